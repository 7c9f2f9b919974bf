//! CLONE (RFC 7862, 15.13): a range of one file becomes that of another by sharing blocks, entirely
//! or not at all. COMMIT does not cover it, so its reply waits for a barrier.

use comity_proto::nfs4::Clone4args;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::copy_common::Transfer;
use crate::stop::Stop;

pub(super) fn clone(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let args: Clone4args = args.value()?;
    let transfer = Transfer::of(compound, (&args.src_stateid, &args.dst_stateid))?;
    let offsets = (args.src_offset, args.dst_offset);
    let length = transfer.length(offsets, args.count)?;
    let Transfer { view, clearance, source, target, .. } = transfer;
    view.clone_range(clearance, (source, offsets.0), (target, offsets.1), length)?;
    let barrier = view.barrier(target);
    compound.behind(Some(barrier));
    Ok(())
}

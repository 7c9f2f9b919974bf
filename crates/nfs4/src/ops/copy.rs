//! COPY (RFC 7862, 15.2): copies on the server, at once. A copy that is long is done in part, and
//! the client goes on behind what was done.

use comity_proto::nfs4::{
    Copy4args, Copy4resok, CopyRequirements4, Nfsstat4, StableHow4, WriteResponse4,
};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::limits::COPY_BYTES_MAX;
use crate::table::Stop;
use crate::transfer::Transfer;

pub(super) fn copy(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Copy4args<'_> = args.value()?;
    if !args.source_server.0.is_empty() {
        return Err(Nfsstat4::NotSupp.into());
    }
    let transfer = Transfer::of(compound, (&args.src_stateid, &args.dst_stateid))?;
    let length = transfer.length((args.src_offset, args.dst_offset), args.count)?;
    let Transfer { view, source, target, .. } = transfer;
    let ends = ((source, args.src_offset), (target, args.dst_offset));
    let copied = view.copy(ends.0, ends.1, length.min(COPY_BYTES_MAX))?;
    let (count, committed) = (copied.value, StableHow4::Unstable);
    let writeverf = compound.nfs.verifier();
    let response = WriteResponse4 { callback_id: None, count, committed, writeverf };
    let requirements = CopyRequirements4 { consecutive: true, synchronous: true };
    reply.value(&Copy4resok { response, requirements });
    Ok(())
}

//! COMMIT (RFC 8881, 18.3): its reply says that all data written to a file are on stable storage.
//! The whole file is synced, whatever range is requested.

use comity_proto::nfs4::{Commit4args, Nfsstat4};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn commit(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Commit4args = args.value()?;
    let (view, node) = compound.real(Nfsstat4::IsDir)?;
    if args.offset.checked_add(args.count.into()).is_none() {
        return Err(Nfsstat4::Inval.into());
    }
    compound.must_be_file(view.getattr(node)?.file_type)?;
    reply.value(&compound.nfs.verifier());
    let barrier = view.barrier(node);
    compound.behind(Some(barrier));
    Ok(())
}

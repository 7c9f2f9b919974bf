//! COPY (RFC 7862, 15.2): copies on the server, at once. A copy that is long is done in part, and
//! the client goes on behind what was done.

use comity_proto::nfs4::{
    Copy4args, Copy4resok, CopyRequirements4, Nfsstat4, StableHow4, WriteResponse4,
};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::limits::COPY_BYTES_MAX;
use crate::stateid::{may_read_saved, may_write};
use crate::table::Stop;

pub(super) fn copy(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Copy4args<'_> = args.value()?;
    if !args.source_server.0.is_empty() {
        return Err(Nfsstat4::NotSupp.into());
    }
    may_read_saved(compound, &args.src_stateid)?;
    may_write(compound, &args.dst_stateid)?;
    let (view, target) = compound.real(Nfsstat4::IsDir)?;
    let (from, source) = compound.real_saved(Nfsstat4::IsDir)?;
    let size = from.getattr(source)?;
    compound.must_be_file(size.file_type)?;
    compound.must_be_file(view.getattr(target)?.file_type)?;
    if from.export_id() != view.export_id() {
        return Err(Nfsstat4::XDev.into());
    }
    let rest = size.size.checked_sub(args.src_offset).ok_or(Nfsstat4::Inval)?;
    let count = if args.count == 0 { rest } else { args.count };
    if count > rest || source == target && overlaps(args.src_offset, args.dst_offset, count) {
        return Err(Nfsstat4::Inval.into());
    }
    let ends = ((source, args.src_offset), (target, args.dst_offset));
    let copied = view.copy(ends.0, ends.1, count.min(COPY_BYTES_MAX))?;
    let (count, committed) = (copied.value, StableHow4::Unstable);
    let writeverf = compound.nfs.verifier();
    let response = WriteResponse4 { callback_id: None, count, committed, writeverf };
    let requirements = CopyRequirements4 { consecutive: true, synchronous: true };
    reply.value(&Copy4resok { response, requirements });
    Ok(())
}

const fn overlaps(one: u64, other: u64, length: u64) -> bool {
    one.abs_diff(other) < length
}

//! WRITE (RFC 8881, 18.32): writes bytes to a file directly from the received record. The reply to
//! a stable write waits for a barrier.

use comity_export::View;
use comity_proto::nfs4::{Nfsstat4, StableHow4, Write4args, Write4resok};
use comity_xdr::{Decoder, Encoder};

use super::read::not_read;
use crate::compound::Compound;
use crate::stateid::may_write;
use crate::stop::Stop;

pub(super) fn write(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Write4args<'_> = args.value()?;
    let (opened, clearance) = may_write(compound, &args.stateid)?;
    let (view, node) = compound.real(Nfsstat4::IsDir)?;
    let (offset, data) = (args.offset, args.data.0);
    let written = if opened {
        view.write_opened(clearance, node, offset, data)
    } else {
        view.write(clearance, node, offset, data).map(|written| written.value)
    };
    let count = written.map_err(|status| not_read(compound, view, node, status))?;
    let (committed, writeverf) = (committed(view, args.stable), compound.nfs.verifier());
    reply.value(&Write4resok { count, committed, writeverf });
    let barrier = (args.stable != StableHow4::Unstable).then(|| view.barrier(node));
    compound.behind(barrier);
    Ok(())
}

/// Returns how stable written data is. On a data server it is never FILE_SYNC4, which would say
/// that the metadata server knows the size, too: Linux then sends no LAYOUTCOMMIT, and the file
/// would keep its old size.
fn committed(view: &View<'_>, wanted: StableHow4) -> StableHow4 {
    match wanted {
        StableHow4::FileSync if view.is_by_layout() => StableHow4::DataSync,
        wanted => wanted,
    }
}

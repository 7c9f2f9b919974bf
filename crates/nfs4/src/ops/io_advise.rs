//! IO_ADVISE (RFC 7862, 15.5): a client announces how it will use a file. The server ignores it,
//! since the kernel reads ahead by itself.

use comity_proto::nfs4::{Bitmap4, IoAdvise4args, Nfsstat4};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stateid::shows;
use crate::stop::Stop;

/// The hints that the server follows for every request: only `IO_ADVISE4_NORMAL`.
const NORMAL: Bitmap4 = Bitmap4::of(&[0]);

pub(super) fn io_advise(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: IoAdvise4args = args.value()?;
    // The mode of the open does not matter, since a writer may send IO_ADVISE, too (RFC 7862,
    // 11.2).
    shows(compound, &args.stateid, 0)?;
    let (view, node) = compound.real(Nfsstat4::IsDir)?;
    compound.must_be_file(view.getattr(node)?.file_type)?;
    reply.value(&NORMAL);
    Ok(())
}

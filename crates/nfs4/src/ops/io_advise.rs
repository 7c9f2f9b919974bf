//! IO_ADVISE (RFC 7862, 15.5): what a client is going to do with a file. Nothing is made of it: the
//! kernel reads ahead by itself.

use comity_proto::nfs4::{Bitmap4, IoAdvise4args, Nfsstat4};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stateid::shows;
use crate::stop::Stop;

/// The hints that the server follows, whatever was advised: none in particular
/// (`IO_ADVISE4_NORMAL`).
const NORMAL: Bitmap4 = Bitmap4::of(&[0]);

pub(super) fn io_advise(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: IoAdvise4args = args.value()?;
    // The mode of an open does not matter: a writer advises, too (RFC 7862, 11.2).
    shows(compound, &args.stateid, 0)?;
    let (view, node) = compound.real(Nfsstat4::IsDir)?;
    compound.must_be_file(view.getattr(node)?.file_type)?;
    reply.value(&NORMAL);
    Ok(())
}

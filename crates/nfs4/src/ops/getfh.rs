//! GETFH (RFC 8881, 18.8): the current filehandle.

use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn getfh(
    compound: &mut Compound<'_>,
    _: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    reply.opaque(compound.seal(compound.object()?).bytes());
    Ok(())
}

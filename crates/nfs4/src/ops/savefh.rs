//! SAVEFH (RFC 8881, 18.28): saves the current filehandle and stateid.

use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn savefh(
    compound: &mut Compound<'_>,
    _: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    compound.saved.clone_from(&compound.current);
    compound.saved_stateid = compound.stateid;
    Ok(())
}

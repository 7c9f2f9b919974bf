//! LOOKUPP (RFC 8881, 18.14): makes the parent directory the current object. The parent of an
//! export's root is outside the export.

use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn lookupp<'a>(
    compound: &mut Compound<'a>,
    _: &mut Decoder<'a>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let object = compound.above()?;
    compound.go_to(object);
    Ok(())
}

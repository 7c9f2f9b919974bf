//! LOOKUPP (RFC 8881, 18.14): goes to the directory above; out of an export if it is its top.

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

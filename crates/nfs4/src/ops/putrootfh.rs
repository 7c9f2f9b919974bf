//! PUTROOTFH (RFC 8881, 18.21): goes to the top of what this server shows; PUTPUBFH (18.20): the
//! same place.

use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::filehandle::Finding;
use crate::stop::Stop;

pub(super) fn putrootfh<'a>(
    compound: &mut Compound<'a>,
    _: &mut Decoder<'a>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let object = Finding::from(compound.pseudo().root()?).entered(compound)?;
    compound.go_to(object);
    Ok(())
}

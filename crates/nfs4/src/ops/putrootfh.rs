//! PUTROOTFH (RFC 8881, 18.21): makes the root of the server's tree the current object. PUTPUBFH
//! (18.20) does the same.

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

//! ILLEGAL (RFC 8881, 18.52): the result for an undefined operation number.

use comity_proto::nfs4::Nfsstat4;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn illegal(
    _: &mut Compound<'_>,
    _: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    Err(Nfsstat4::OpIllegal.into())
}

//! Operations that this server does not support.

use comity_proto::nfs4::Nfsstat4;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn unsupported(
    _: &mut Compound<'_>,
    _: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    Err(Nfsstat4::NotSupp.into())
}

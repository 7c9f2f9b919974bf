//! RESTOREFH (RFC 8881, 18.27): the saved filehandle and stateid become the current ones.

use comity_proto::nfs4::Nfsstat4;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn restorefh(
    compound: &mut Compound<'_>,
    _: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    if compound.saved.is_none() {
        return Err(match compound.minor {
            0 => Nfsstat4::RestoreFh,
            _ => Nfsstat4::NoFileHandle,
        }
        .into());
    }
    compound.current.clone_from(&compound.saved);
    compound.stateid = compound.saved_stateid;
    Ok(())
}

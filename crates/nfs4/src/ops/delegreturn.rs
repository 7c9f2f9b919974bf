//! DELEGRETURN (RFC 8881, 18.6).

use comity_proto::nfs4::Stateid4;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn delegreturn(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let stateid = args.value::<Stateid4>()?;
    let file = compound.key()?;
    let stateid = compound.stateid_of(&stateid)?;
    compound.engine().delegreturn(compound.at(&file), &stateid).map_err(refused)
}

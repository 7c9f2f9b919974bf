//! FREE_STATEID (RFC 8881, 18.38).

use comity_proto::nfs4::Stateid4;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn free_stateid(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let stateid = args.value::<Stateid4>()?;
    let stateid = compound.stateid_of(&stateid)?;
    compound.engine().free_stateid(compound.sender(), &stateid).map_err(refused)
}

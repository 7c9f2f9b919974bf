//! RELEASE_LOCKOWNER (RFC 7530, 16.37).

use comity_proto::nfs4::StateOwner4;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn release_lockowner(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<StateOwner4<'_>>()?;
    let client = compound.client_of(args.clientid)?;
    let asked = (compound.now(), compound.caller);
    let released = compound.engine().release_lockowner(asked, &client, args.owner.0);
    released.map_err(refused)
}

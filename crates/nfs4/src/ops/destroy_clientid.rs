//! DESTROY_CLIENTID (RFC 8881, 18.50).

use comity_proto::nfs4::Clientid4;
use comity_state::ClientId;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn destroy_clientid(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let client = ClientId(args.value::<Clientid4>()?);
    let (now, caller) = (compound.now(), compound.caller);
    compound.engine().destroy_clientid(now, client, caller).map_err(refused)
}

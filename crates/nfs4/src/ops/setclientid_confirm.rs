//! SETCLIENTID_CONFIRM (RFC 7530, 16.34): a client confirms its SETCLIENTID, and gets a lease.

use comity_proto::nfs4::SetclientidConfirm4;
use comity_state::{ClientId, Verifier};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn setclientid_confirm(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let SetclientidConfirm4 { clientid, confirm } = args.value()?;
    let announced = (ClientId(clientid), Verifier(confirm));
    let (now, caller) = (compound.now(), compound.caller);
    compound.engine().setclientid_confirm(now, announced, caller).map_err(refused)
}

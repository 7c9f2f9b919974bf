//! DELEGPURGE (RFC 8881, 18.5) is for servers that keep delegations of a client's earlier instance
//! (CLAIM_DELEGATE_PREV). This server does not keep them.

use comity_proto::nfs4::{Clientid4, Nfsstat4};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn delegpurge(
    _: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    args.value::<Clientid4>()?;
    Err(Nfsstat4::NotSupp.into())
}

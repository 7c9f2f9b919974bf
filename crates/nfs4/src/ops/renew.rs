//! RENEW (RFC 7530, 16.27): renews the lease of a client.

use comity_proto::nfs4::{Clientid4, Nfsstat4};
use comity_state::{ClientId, Error};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn renew(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let client = ClientId(args.value::<Clientid4>()?);
    let renewed = compound.engine().renew(compound.now(), client, compound.caller);
    renewed.map_err(|error| match error {
        Error::WrongCred => Nfsstat4::Access.into(),
        error => refused(error),
    })
}

//! RENEW (RFC 7530, 16.27): renews the lease of a client. Behind a GETATTR that asks where a file
//! system is, it also says which client asks.

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
    let renew = || compound.engine().renew(compound.now(), client, compound.caller);
    let renewed = match renew() {
        Err(Error::LeaseMoved) if tell_places(compound, client) => renew(),
        renewed => renewed,
    };
    renewed.map_err(|error| match error {
        Error::WrongCred => Nfsstat4::Access.into(),
        error => refused(error),
    })
}

/// Notes that a client was told of places in this COMPOUND; returns whether there were any.
fn tell_places(compound: &Compound<'_>, client: ClientId) -> bool {
    let Ok(client) = compound.engine().client_of(client, compound.caller) else { return false };
    compound.placed.iter().for_each(|export| client.knows_place(*export));
    !compound.placed.is_empty()
}

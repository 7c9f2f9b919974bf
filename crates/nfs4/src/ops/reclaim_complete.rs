//! RECLAIM_COMPLETE (RFC 8881, 18.51): the client has reclaimed all its state from before a
//! restart.

use comity_proto::nfs4::Nfsstat4;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn reclaim_complete(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    if args.value::<bool>()? {
        // A RECLAIM_COMPLETE of a single file system has no effect: a file system comes here with
        // its state, so that nothing of it is reclaimed (RFC 8881, 18.51.3).
        compound.object()?;
        return Ok(());
    }
    let client = compound.client().ok_or(Stop::Status(Nfsstat4::OpNotInSession))?;
    compound.engine().reclaim_complete(compound.now(), client, compound.caller).map_err(refused)
}

//! RECLAIM_COMPLETE (RFC 8881, 18.51): the client has reclaimed all its state from before a
//! restart.

use comity_export::ExportId;
use comity_proto::nfs4::Nfsstat4;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn reclaim_complete(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let is_of_one = args.value::<bool>()?;
    if is_of_one {
        compound.object()?;
    }
    let client = compound.client().ok_or(Stop::Status(Nfsstat4::OpNotInSession))?;
    let (engine, caller) = (compound.engine(), compound.caller);
    // A file system that was moved here with its state has no grace period, so that the completion
    // of it has no effect.
    let completed = match is_of_one {
        true => engine.reclaim_complete_at((compound.export(), client), caller),
        false => engine.reclaim_complete_where(compound.now(), (client, caller), |export| {
            has_address(compound, export)
        }),
    };
    completed.map_err(refused)
}

/// Returns whether clients use an export at the address to which the call was sent.
fn has_address(compound: &Compound<'_>, export: u32) -> bool {
    let export = compound.plan.export(ExportId(export));
    let address = export.and_then(|export| export.settings().address);
    address.is_none_or(|address| compound.visitor.local() == Some(address))
}

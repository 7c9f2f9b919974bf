//! EXCHANGE_ID (RFC 8881, 18.35): client and server introduce themselves.

use comity_export::Plan;
use comity_proto::nfs4::{
    ExchangeId4args, ExchangeId4resok, Nfsstat4, ServerOwner4, StateProtect4a, StateProtect4r,
    exchgid,
};
use comity_state::ExchangeId;
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::compound::Compound;
use crate::state_context::owner_of;
use crate::stop::{Stop, refused};

/// Flags that a client may send.
const KNOWN: u32 = exchgid::SUPP_MOVED_REFER
    | exchgid::SUPP_MOVED_MIGR
    | exchgid::BIND_PRINC_STATEID
    | exchgid::USE_NON_PNFS
    | exchgid::USE_PNFS_MDS
    | exchgid::USE_PNFS_DS
    | exchgid::UPD_CONFIRMED_REC_A;

pub(super) fn exchange_id(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<ExchangeId4args<'_>>()?;
    // Minor version 2 adds one flag (RFC 7862, 14.1.3).
    let known = if compound.minor > 1 { KNOWN | exchgid::SUPP_FENCE_OPS } else { KNOWN };
    if args.flags & !known != 0 {
        return Err(Nfsstat4::Inval.into());
    }
    match args.state_protect {
        StateProtect4a::None => {}
        // SP4_MACH_CRED needs RPCSEC_GSS, which the server does not support.
        StateProtect4a::MachCred(_) => return Err(Nfsstat4::Inval.into()),
        StateProtect4a::Ssv(_) => return Err(Nfsstat4::EncrAlgUnsupp.into()),
    }
    let wanted = ExchangeId {
        owner: owner_of(&args.clientowner),
        caller: compound.caller,
        update: args.flags & exchgid::UPD_CONFIRMED_REC_A != 0,
    };
    let known = compound.engine().exchange_id(compound.now(), wanted).map_err(refused)?;
    compound.note_address(known.clientid);
    let confirmed = if known.confirmed { exchgid::CONFIRMED_R } else { 0 };
    let identity = &compound.nfs.memory().identity;
    reply.value(&ExchangeId4resok {
        clientid: known.clientid.0,
        sequenceid: known.sequenceid,
        flags: roles(compound.plan) | confirmed,
        state_protect: StateProtect4r::None,
        server_owner: ServerOwner4 { minor_id: 0, major_id: Opaque(&identity.owner) },
        server_scope: Opaque(&identity.scope),
        server_impl_id: None,
    });
    Ok(())
}

/// The roles of the server in parallel NFS (RFC 8881, 13.1).
fn roles(plan: &Plan) -> u32 {
    if plan.stores_data() {
        exchgid::USE_PNFS_DS | exchgid::USE_NON_PNFS
    } else if plan.has_placement() {
        exchgid::USE_PNFS_MDS
    } else {
        exchgid::USE_NON_PNFS
    }
}

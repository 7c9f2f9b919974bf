//! CREATE_SESSION (RFC 8881, 18.36).

use comity_proto::nfs4::{
    CallbackSecParms4, ChannelAttrs4, CreateSession4args, CreateSession4resok, Nfsstat4,
    create_session as flag,
};
use comity_state::{CallbackSecurity, ChannelAttrs, ClientId, CreateSession};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn create_session(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<CreateSession4args<'_>>()?;
    if args.flags & !(flag::PERSIST | flag::CONN_BACK_CHAN | flag::CONN_RDMA) != 0 {
        return Err(Nfsstat4::Inval.into());
    }
    if args.fore_chan.maxrequests == 0 || args.fore_chan.maxoperations == 0 {
        return Err(Nfsstat4::Inval.into());
    }
    let wanted = CreateSession {
        clientid: ClientId(args.clientid),
        sequenceid: args.sequence,
        caller: compound.caller,
        connection: compound.connection(),
        back_wanted: args.flags & flag::CONN_BACK_CHAN != 0,
        fore: attrs(&args.fore_chan),
        back: attrs(&args.back_chan),
        minor: compound.minor,
        program: args.cb_program,
        security: security(&args.sec_parms.0),
    };
    let made = compound.engine().create_session(compound.now(), &wanted).map_err(refused)?;
    let session = compound.engine().session(&made.session);
    let address = compound.visitor.local();
    session.zip(address).iter().for_each(|(session, address)| session.made_at(*address));
    if made.back.is_some() {
        compound.offer_line();
    }
    let flags = if made.back.is_some() { flag::CONN_BACK_CHAN } else { 0 };
    reply.value(&CreateSession4resok {
        sessionid: made.session.0,
        sequence: made.sequenceid,
        flags,
        fore_chan: on_wire(&made.fore),
        back_chan: on_wire(&made.back_attrs),
    });
    Ok(())
}

/// Returns the credential for callbacks: the first that the server supports, which excludes
/// RPCSEC_GSS. The others are dropped, since they would never be used.
pub(super) fn security(offered: &[CallbackSecParms4<'_>]) -> Box<[CallbackSecurity]> {
    let known = |offer: &CallbackSecParms4<'_>| match offer {
        CallbackSecParms4::None => Some(CallbackSecurity::None),
        CallbackSecParms4::Sys(sys) => Some(CallbackSecurity::Sys {
            machine: sys.machine_name.0.into(),
            uid: sys.uid,
            gid: sys.gid,
            gids: sys.gids.0.as_slice().into(),
        }),
        CallbackSecParms4::Gss(_) => None,
    };
    offered.iter().filter_map(known).take(1).collect()
}

const fn attrs(wished: &ChannelAttrs4) -> ChannelAttrs {
    ChannelAttrs {
        request_bytes_max: wished.maxrequestsize,
        response_bytes_max: wished.maxresponsesize,
        response_cached_bytes_max: wished.maxresponsesize_cached,
        operations_max: wished.maxoperations,
        requests_max: wished.maxrequests,
    }
}

const fn on_wire(agreed: &ChannelAttrs) -> ChannelAttrs4 {
    ChannelAttrs4 {
        headerpadsize: 0,
        maxrequestsize: agreed.request_bytes_max,
        maxresponsesize: agreed.response_bytes_max,
        maxresponsesize_cached: agreed.response_cached_bytes_max,
        maxoperations: agreed.operations_max,
        maxrequests: agreed.requests_max,
        rdma_ird: None,
    }
}

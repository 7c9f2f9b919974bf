//! BIND_CONN_TO_SESSION (RFC 8881, 18.34).

use comity_proto::nfs4::{BindConnToSession4, Nfsstat4, channel_dir};
use comity_state::{Direction, SessionId};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn bind_conn_to_session(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<BindConnToSession4>()?;
    let wanted = match args.dir {
        channel_dir::FORE => Direction::Fore,
        channel_dir::BACK => Direction::Back,
        channel_dir::BOTH | channel_dir::BACK_OR_BOTH => Direction::Both,
        _ => return Err(Nfsstat4::Inval.into()),
    };
    let (session, connection) = (SessionId(args.sessid), compound.connection());
    let (now, caller) = (compound.now(), compound.caller);
    let bound = compound.engine().bind_connection(now, &session, (connection, wanted), caller);
    let bound = bound.map_err(refused)?;
    compound.offer_line();
    let dir = match bound {
        Direction::Fore => channel_dir::FORE,
        Direction::Back => channel_dir::BACK,
        Direction::Both => channel_dir::BOTH,
    };
    reply.value(&BindConnToSession4 { dir, use_conn_in_rdma_mode: false, ..args });
    Ok(())
}

//! SHARE: a share reservation of DOS.

use comity_export::Door;
use comity_proto::nlm::{Nlm4Share, Nlm4Shareargs, Nlm4Shareres, Nlm4Stats};
use comity_rpc::Done;
use comity_state::{FileKey, LockRequestKind, Share};
use comity_xdr::Encoder;

use super::Nlm;
use super::arguments::{host, may_open};
use super::status::{failed, stopped};
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn share(nlm: &Nlm, request: &Request<'_>, reply: &mut Encoder) -> Result<Answer, Stop> {
    let args = request.arguments::<Nlm4Shareargs<'_>>()?;
    let request_kind =
        if args.reclaim { LockRequestKind::Reclaim } else { LockRequestKind::NonBlocking };
    let stat = match key(request, &args.share) {
        Ok(key) => reserve(nlm, request, (&args.share, key), request_kind)?,
        Err(stop) => stopped(stop)?,
    };
    Ok(answer(reply, &args, stat))
}

fn reserve(
    nlm: &Nlm,
    request: &Request<'_>,
    (share, key): (&Nlm4Share<'_>, FileKey),
    request_kind: LockRequestKind,
) -> Result<Nlm4Stats, Stop> {
    let host = host(nlm, request)?;
    // A host that cannot be stored gets no share: an undo would free what the host had
    // before.
    if !nlm.is_settled() {
        return Ok(Nlm4Stats::DeniedNolocks);
    }
    let wanted = Share { access: share.access & Share::BOTH, deny: share.mode & Share::BOTH };
    let reserved = nlm.engine.share_host(nlm.now(), &host, (share.oh.0, key), wanted, request_kind);
    if !nlm.is_settled() {
        nlm.engine.unshare_host(nlm.now(), &host, (share.oh.0, key));
        return Ok(Nlm4Stats::DeniedNolocks);
    }
    Ok(reserved.map_or_else(failed, |()| Nlm4Stats::Granted))
}

/// The file of a reservation, which the caller must be able to open.
fn key(request: &Request<'_>, share: &Nlm4Share<'_>) -> Result<FileKey, Stop> {
    let (view, node) = request.enter(Door::Handle(share.fh.0))?;
    may_open(&view, &node)?;
    Ok(view.key(&node))
}

pub(super) fn answer(reply: &mut Encoder, args: &Nlm4Shareargs<'_>, stat: Nlm4Stats) -> Answer {
    reply.value(&Nlm4Shareres { cookie: args.cookie, stat, sequence: 0 });
    Answer::new(Done { status: stat as u32, export: None })
}

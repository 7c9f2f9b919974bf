//! LOCK and NM_LOCK: an owner asks for a range, and may wait for it. NM_LOCK is for hosts
//! without a status monitor; the server treats them as it treats others.

use comity_proto::nlm::{Nlm4Lockargs, Nlm4Stats};
use comity_state::{LockRefusal, LockRequestKind, Taken};
use comity_xdr::Encoder;

use super::arguments::Locked;
use super::status::{answer, denied, stopped};
use super::{Nlm, take};
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn lock(nlm: &Nlm, request: &Request<'_>, reply: &mut Encoder) -> Result<Answer, Stop> {
    let args = request.arguments::<Nlm4Lockargs<'_>>()?;
    let request_kind = match (args.reclaim, args.block) {
        (true, _) => LockRequestKind::Reclaim,
        (false, true) => LockRequestKind::Blocking,
        (false, false) => LockRequestKind::NonBlocking,
    };
    claim(nlm, request, reply, (&args, request_kind, Some(args.state)))
}

pub(super) fn nm_lock(
    nlm: &Nlm,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Nlm4Lockargs<'_>>()?;
    claim(nlm, request, reply, (&args, LockRequestKind::NonBlocking, None))
}

fn claim(
    nlm: &Nlm,
    request: &Request<'_>,
    reply: &mut Encoder,
    (args, request_kind, state): (&Nlm4Lockargs<'_>, LockRequestKind, Option<i32>),
) -> Result<Answer, Stop> {
    let locked = match Locked::open(nlm, request, &args.alock) {
        Ok(locked) => locked,
        Err(stop) => return Ok(answer(reply, args.cookie, (stopped(stop)?, None))),
    };
    if let Some(state) = state {
        locked.host.set_monitor_state(state);
    }
    let export = Some(locked.file.export);
    // A host that cannot be stored gets no lock: an undo would free what the host had
    // before.
    if !nlm.is_settled() {
        return Ok(answer(reply, args.cookie, (Nlm4Stats::DeniedNolocks, export)));
    }
    let wish = locked.lock(args.exclusive);
    let lock = || nlm.engine.lock_host(nlm.now(), &locked.host, &wish, request_kind);
    let stat = match take(nlm.locals.as_deref(), (&locked.host, &wish, request_kind), lock) {
        Ok(Ok(())) => Nlm4Stats::Granted,
        Ok(Err(LockRefusal::Denied { .. })) if request_kind == LockRequestKind::Blocking => {
            Nlm4Stats::Blocked
        }
        Ok(Err(refusal)) => denied(&refusal),
        // Programs on the server do not notify when they unlock, so the host has to ask
        // again.
        Err(_) if request_kind == LockRequestKind::Blocking => Nlm4Stats::DeniedGracePeriod,
        Err(Taken::Later) => Nlm4Stats::DeniedNolocks,
        Err(_) => Nlm4Stats::Denied,
    };
    let settled = nlm.is_settled();
    let stat = if settled { stat } else { Nlm4Stats::DeniedNolocks };
    if !settled {
        nlm.engine.cancel_host(nlm.now(), &locked.host, &wish);
        let _ = nlm.engine.unlock_host(nlm.now(), &locked.host, &wish);
    }
    Ok(answer(reply, args.cookie, (stat, export)))
}

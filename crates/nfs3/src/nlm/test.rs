//! TEST: returns a lock that conflicts.

use comity_proto::nlm::{Nlm4Holder, Nlm4Stats, Nlm4Testargs};
use comity_state::{ByteRange, ClientId, Locals, LockRefusal, LockType};
use comity_xdr::{Encoder, Opaque};

use super::Nlm;
use super::arguments::Locked;
use super::owner::HostOwner;
use super::status::{answer, denied, stopped};
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn test(nlm: &Nlm, request: &Request<'_>, reply: &mut Encoder) -> Result<Answer, Stop> {
    let Nlm4Testargs { cookie, exclusive, alock } = request.arguments()?;
    let locked = match Locked::open(nlm, request, &alock) {
        Ok(locked) => locked,
        Err(stop) => return Ok(answer(reply, cookie, (stopped(stop)?, None))),
    };
    let export = Some(locked.file.export);
    let tested = nlm.engine.test_host(nlm.now(), &locked.host, &locked.lock(exclusive));
    let wish = locked.lock(exclusive);
    let free = |locals: &dyn Locals| locals.is_free(&wish.file, (wish.range, wish.kind));
    let tested = match &nlm.locals {
        Some(locals) if tested.is_ok() && !free(&**locals) => Err(program(wish.range)),
        _ => tested,
    };
    let Err(refusal) = tested else {
        return Ok(answer(reply, cookie, (Nlm4Stats::Granted, export)));
    };
    let answered = answer(reply, cookie, (denied(&refusal), export));
    if let LockRefusal::Denied { range, kind, owner, .. } = &refusal {
        let HostOwner { svid, oh, .. } = HostOwner::named(owner);
        let l_len = if range.last == u64::MAX { 0 } else { range.last - range.first + 1 };
        let (exclusive, l_offset) = (*kind == LockType::Write, range.first);
        let oh = if oh.0.is_empty() { Opaque(owner.get(..64).unwrap_or(owner)) } else { oh };
        reply.value(&Nlm4Holder { exclusive, svid, oh, l_offset, l_len });
    }
    Ok(answered)
}

/// Returns the conflict with a program on the server. Hosts do not learn which program it is.
fn program(range: ByteRange) -> LockRefusal {
    let (client, owner) = (ClientId(0), Box::default());
    LockRefusal::Denied { range, kind: LockType::Write, client, owner }
}

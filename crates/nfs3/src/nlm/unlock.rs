//! UNLOCK: what the owner holds of a range is free. It cannot fail: what is not held is free.

use comity_proto::nlm::Nlm4Unlockargs;
use comity_xdr::Encoder;

use super::Nlm;
use super::locked::{Locked, freed};
use super::stats::{answer, stopped};
use crate::answer::Answer;
use crate::request::{Request, Stop};

pub(super) fn unlock(
    nlm: &Nlm,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let Nlm4Unlockargs { cookie, alock } = request.arguments()?;
    let freed = match Locked::held(nlm, request, &alock) {
        Ok(locked) => {
            nlm.engine.unlock_host(nlm.now(), &locked.host, &locked.lock(false));
            (freed(request, alock.fh.0)?, Some(locked.file.export))
        }
        Err(stop) => (stopped(stop)?, None),
    };
    Ok(answer(reply, cookie, freed))
}

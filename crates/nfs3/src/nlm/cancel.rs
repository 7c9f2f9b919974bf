//! CANCEL: the owner does not wait for a range any more.

use comity_proto::nlm::Nlm4Cancargs;
use comity_xdr::Encoder;

use super::Nlm;
use super::locked::{Locked, freed};
use super::stats::{answer, stopped};
use crate::answer::Answer;
use crate::request::{Request, Stop};

pub(super) fn cancel(
    nlm: &Nlm,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Nlm4Cancargs<'_>>()?;
    let cancelled = match Locked::held(nlm, request, &args.alock) {
        Ok(locked) => {
            nlm.engine.cancel_host(nlm.now(), &locked.host, &locked.lock(args.exclusive));
            (freed(request, args.alock.fh.0)?, Some(locked.file.export))
        }
        Err(stop) => (stopped(stop)?, None),
    };
    Ok(answer(reply, args.cookie, cancelled))
}

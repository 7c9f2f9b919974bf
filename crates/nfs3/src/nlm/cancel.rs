//! CANCEL: the owner does not wait for a range any more.

use comity_proto::nlm::{Nlm4Cancargs, Nlm4Stats};
use comity_xdr::Encoder;

use super::Nlm;
use super::locked::Locked;
use super::stats::{answer, stopped};
use crate::answer::Answer;
use crate::request::{Request, Stop};

pub(super) fn cancel(
    nlm: &Nlm,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Nlm4Cancargs<'_>>()?;
    let cancelled = match Locked::of(nlm, request, &args.alock) {
        Ok(locked) => {
            nlm.engine.cancel_host(nlm.now(), &locked.host, &locked.lock(args.exclusive));
            (Nlm4Stats::Granted, Some(locked.file.export))
        }
        Err(stop) => (stopped(stop)?, None),
    };
    Ok(answer(reply, args.cookie, cancelled))
}

//! CANCEL: the owner does not wait for a range any longer.

use comity_proto::nlm::Nlm4Cancargs;
use comity_xdr::Encoder;

use super::Nlm;
use super::arguments::let_go;
use super::status::answer;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn cancel(
    nlm: &Nlm,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Nlm4Cancargs<'_>>()?;
    let cancelled = let_go(nlm, request, &args.alock, |locked| {
        nlm.engine.cancel_host(nlm.now(), &locked.host, &locked.lock(args.exclusive));
        Ok(())
    })?;
    Ok(answer(reply, args.cookie, cancelled))
}

//! UNLOCK: frees the bytes that the owner holds of a range; bytes that it does not hold are no
//! error. It fails where it would make one range too many.

use comity_proto::nlm::Nlm4Unlockargs;
use comity_xdr::Encoder;

use super::Nlm;
use super::arguments::let_go;
use super::status::answer;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn unlock(
    nlm: &Nlm,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let Nlm4Unlockargs { cookie, alock } = request.arguments()?;
    let freed = let_go(nlm, request, &alock, |locked| {
        nlm.engine.unlock_host(nlm.now(), &locked.host, &locked.lock(false))
    })?;
    Ok(answer(reply, cookie, freed))
}

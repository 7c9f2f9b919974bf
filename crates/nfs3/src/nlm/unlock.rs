//! UNLOCK: frees the bytes of a range that the owner holds; other bytes are no error. It fails
//! if it would split one lock more than the bound allows.

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

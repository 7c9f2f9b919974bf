//! UNSHARE: frees a share reservation.

use comity_proto::nlm::Nlm4Shareargs;
use comity_xdr::Encoder;

use super::Nlm;
use super::arguments::{freed, held_key, known_host};
use super::share::answer;
use super::status::stopped;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn unshare(
    nlm: &Nlm,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Nlm4Shareargs<'_>>()?;
    let stat = match held_key(request, args.share.fh.0) {
        Ok(key) => {
            if let Some(host) = known_host(nlm, request) {
                nlm.engine.unshare_host(nlm.now(), &host, (args.share.oh.0, key));
            }
            freed(request, args.share.fh.0)?
        }
        Err(stop) => stopped(stop)?,
    };
    Ok(answer(reply, &args, stat))
}

//! UNSHARE: a share reservation is over.

use comity_proto::nlm::{Nlm4Shareargs, Nlm4Stats};
use comity_xdr::Encoder;

use super::Nlm;
use super::locked::host;
use super::share::{answer, key};
use super::stats::stopped;
use crate::answer::Answer;
use crate::request::{Request, Stop};

pub(super) fn unshare(
    nlm: &Nlm,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Nlm4Shareargs<'_>>()?;
    let stat = match key(request, &args.share) {
        Ok(key) => {
            let host = host(nlm, request)?;
            nlm.engine.unshare_host(nlm.now(), &host, (args.share.oh.0, key));
            Nlm4Stats::Granted
        }
        Err(stop) => stopped(stop)?,
    };
    Ok(answer(reply, &args, stat))
}

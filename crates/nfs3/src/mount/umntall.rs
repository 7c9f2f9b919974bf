//! UMNTALL (RFC 1813, 5.2.4): a client no longer uses anything here.

use comity_rpc::Done;
use comity_xdr::Encoder;

use super::Mount;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn umntall(
    mount: &Mount,
    request: &Request<'_>,
    _: &mut Encoder,
) -> Result<Answer, Stop> {
    request.arguments::<()>()?;
    mount.mounts.remove_all(request.visitor.peer().ip());
    Ok(Answer::new(Done::default()))
}

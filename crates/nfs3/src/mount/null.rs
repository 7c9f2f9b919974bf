//! NULL (RFC 1813, 5.2.0): does nothing, for every caller.

use comity_rpc::Done;
use comity_xdr::Encoder;

use super::Mount;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn null(_: &Mount, request: &Request<'_>, _: &mut Encoder) -> Result<Answer, Stop> {
    request.arguments::<()>()?;
    Ok(Answer::new(Done::default()))
}

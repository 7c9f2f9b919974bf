//! NULL (RFC 1813, 3.3.0): does nothing, for every caller. Clients use it to see whether the
//! server answers, and to measure.

use comity_rpc::Done;
use comity_xdr::Encoder;

use crate::program::Nfs3;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn null(_: &Nfs3, request: &Request<'_>, _: &mut Encoder) -> Result<Answer, Stop> {
    request.arguments::<()>()?;
    Ok(Answer::new(Done::default()))
}

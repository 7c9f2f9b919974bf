//! DUMP (RFC 1813, 5.2.2): what the caller has mounted. What others have, from where and below
//! which path, may be nothing it is to know of, and a caller of MOUNT is known by its address only.

use comity_rpc::Done;
use comity_xdr::Encoder;

use super::Mount;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn dump(
    mount: &Mount,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    request.arguments::<()>()?;
    mount.mounts.of(request.visitor.peer().ip(), |mounted| {
        reply.value(&true);
        reply.opaque(mounted.client.to_string().as_bytes());
        reply.opaque(&mounted.path);
    });
    reply.value(&false);
    Ok(Answer::new(Done::default()))
}

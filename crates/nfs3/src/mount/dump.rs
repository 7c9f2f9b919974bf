//! DUMP (RFC 1813, 5.2.2): returns the mounts of the caller. The mounts of other clients are
//! left out: the caller may have no right to know of them, and MOUNT identifies a caller by its
//! address only.

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

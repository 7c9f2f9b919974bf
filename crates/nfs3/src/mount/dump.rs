//! DUMP (RFC 1813, 5.2.2): who has mounted what.

use comity_rpc::Done;
use comity_xdr::Encoder;

use super::Mount;
use crate::answer::Answer;
use crate::request::{Request, Stop};

pub(super) fn dump(
    mount: &Mount,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    request.arguments::<()>()?;
    mount.mounts.each(|mounted| {
        reply.value(&true);
        reply.opaque(mounted.client.to_string().as_bytes());
        reply.opaque(&mounted.path);
    });
    reply.value(&false);
    Ok(Answer::new(Done::default()))
}

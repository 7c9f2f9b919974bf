//! UMNT (RFC 1813, 5.2.3): a client no longer uses a path. Its handles stay valid.

use comity_proto::mount::Dirpath;
use comity_rpc::Done;
use comity_xdr::Encoder;

use super::Mount;
use super::path::plain;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn umnt(mount: &Mount, request: &Request<'_>, _: &mut Encoder) -> Result<Answer, Stop> {
    let path = plain(request.arguments::<Dirpath<'_>>()?.0);
    mount.mounts.remove(request.visitor.peer().ip(), &path);
    Ok(Answer::new(Done::default()))
}

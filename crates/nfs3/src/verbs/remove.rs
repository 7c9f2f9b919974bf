//! REMOVE (RFC 1813, 3.3.12): removes a name, unless it is that of a directory.

use comity_coherence::ChangesDirectories;
use comity_export::Door;
use comity_proto::nfs3::Diropargs3;
use comity_xdr::Encoder;

use super::remove_reply;
use crate::program::Nfs3;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn remove(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let Diropargs3 { dir, name } = request.arguments()?;
    let (view, dir) = request.enter(Door::Handle(dir.0))?;
    let cleared = nfs.host_call(request).clear_removal(&view, (&dir, name.0));
    let change = cleared.and_then(|cleared| view.remove(cleared, &dir, name.0));
    Ok(remove_reply::answer(reply, &view, &dir, change))
}

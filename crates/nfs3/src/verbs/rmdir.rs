//! RMDIR (RFC 1813, 3.3.13): removes an empty directory.

use comity_coherence::clear_empty;
use comity_export::Door;
use comity_proto::nfs3::Diropargs3;
use comity_xdr::Encoder;

use super::remove_reply;
use crate::program::Nfs3;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn rmdir(_: &Nfs3, request: &Request<'_>, reply: &mut Encoder) -> Result<Answer, Stop> {
    let Diropargs3 { dir, name } = request.arguments()?;
    let (view, dir) = request.enter(Door::Handle(dir.0))?;
    let change = view.rmdir(clear_empty(), &dir, name.0);
    Ok(remove_reply::answer(reply, &view, &dir, change))
}

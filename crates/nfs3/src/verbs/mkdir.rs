//! MKDIR (RFC 1813, 3.3.9): makes a directory.

use comity_coherence::ChangesDirectories;
use comity_export::Door;
use comity_proto::nfs3::Mkdir3args;
use comity_xdr::Encoder;

use super::create_reply;
use crate::program::Nfs3;
use crate::reply::Answer;
use crate::request::{Request, Stop};
use crate::settings::set_attr;

pub(super) fn mkdir(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let Mkdir3args { place, attributes } = request.arguments()?;
    let (view, dir) = request.enter(Door::Handle(place.dir.0))?;
    let made = set_attr(&attributes).and_then(|set| {
        let cleared = nfs.host_call(request).clear_new_name((&view, &dir))?;
        view.mkdir(cleared, &dir, place.name.0, &set)
    });
    Ok(create_reply::answer(reply, &view, &dir, made))
}

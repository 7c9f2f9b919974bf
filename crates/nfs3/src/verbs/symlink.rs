//! SYMLINK (RFC 1813, 3.3.10): makes a symbolic link. Its target is kept as the client sends
//! it; only its length has a bound.

use comity_coherence::ChangesDirectories;
use comity_export::Door;
use comity_proto::nfs3::Symlink3args;
use comity_vfs::limits::LINK_TARGET_BYTES_MAX;
use comity_vfs::{Result, Status};
use comity_xdr::Encoder;

use super::create_reply;
use crate::program::Nfs3;
use crate::reply::Answer;
use crate::request::{Request, Stop};
use crate::settings::set_attr;

pub(super) fn symlink(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> std::result::Result<Answer, Stop> {
    let Symlink3args { place, attributes, target } = request.arguments()?;
    let (view, dir) = request.enter(Door::Handle(place.dir.0))?;
    let made = set_attr(&attributes).and_then(|set| {
        check(target.0)?;
        let cleared = nfs.host_call(request).clear_new_name((&view, &dir))?;
        view.symlink(cleared, &dir, place.name.0, target.0, &set)
    });
    Ok(create_reply::answer(reply, &view, &dir, made))
}

fn check(target: &[u8]) -> Result<()> {
    match target {
        b"" => Err(Status::Inval),
        _ if target.len() > LINK_TARGET_BYTES_MAX => Err(Status::NameTooLong),
        _ if target.contains(&0) => Err(Status::Inval),
        _ => Ok(()),
    }
}

//! READLINK (RFC 1813, 3.3.5): the target of a symbolic link.

use comity_export::Door;
use comity_proto::nfs3::{NfsFh3, Readlink3resok};
use comity_xdr::{Encoder, Opaque};

use crate::attributes::{attributes_now, fattr3};
use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};

pub(super) fn readlink(
    _: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let symlink = request.arguments::<NfsFh3<'_>>()?;
    let (view, node) = request.enter(Door::Handle(symlink.0))?;
    Ok(match view.readlink(&node) {
        Ok((target, attr)) => {
            let symlink_attributes = Some(fattr3(&attr));
            ok(reply, &view, &Readlink3resok { symlink_attributes, data: Opaque(&target) })
        }
        Err(status) => fail(reply, &view, status, &attributes_now(&view, &node)),
    })
}

//! LOOKUP (RFC 1813, 3.3.3): returns the object of a name in a directory.

use comity_export::Door;
use comity_proto::nfs3::{Diropargs3, Lookup3resok};
use comity_xdr::{Encoder, Opaque};

use crate::attributes::{attributes_now, fattr3};
use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};

pub(super) fn lookup(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Diropargs3<'_>>()?;
    let (view, dir) = request.enter(Door::Handle(args.dir.0))?;
    Ok(match view.lookup(&dir, args.name.0) {
        Ok((seen, dir_attr)) => {
            let sealed = view.seal(&seen.node);
            let body = Lookup3resok {
                object: Opaque(sealed.bytes()),
                obj_attributes: nfs.beside(&view, &seen.node, &seen.attr),
                dir_attributes: dir_attr.as_ref().map(fattr3),
            };
            ok(reply, &view, &body)
        }
        Err(status) => fail(reply, &view, status, &attributes_now(&view, &dir)),
    })
}

//! FSSTAT (RFC 1813, 3.3.18): space and inodes, as the caller may use them.

use comity_export::Door;
use comity_proto::nfs3::{Fsstat3resok, NfsFh3};
use comity_xdr::Encoder;

use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};

pub(super) fn fsstat(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let root = request.arguments::<NfsFh3<'_>>()?;
    let (view, node) = request.enter(Door::Handle(root.0))?;
    let obj_attributes = nfs.beside_failure(&view, &node);
    Ok(match view.statfs(&node) {
        Ok(space) => {
            let body = Fsstat3resok {
                obj_attributes,
                tbytes: space.bytes_total,
                fbytes: space.bytes_free,
                abytes: space.bytes_available,
                tfiles: space.files_total,
                ffiles: space.files_free,
                afiles: space.files_available,
                // The space may change at any moment.
                invarsec: 0,
            };
            ok(reply, &view, &body)
        }
        Err(status) => fail(reply, &view, status, &obj_attributes),
    })
}

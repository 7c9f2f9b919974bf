//! PATHCONF (RFC 1813, 3.3.20): returns the POSIX limits of the file system.

use comity_export::Door;
use comity_proto::nfs3::{NfsFh3, Pathconf3resok};
use comity_xdr::Encoder;

use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};

pub(super) fn pathconf(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let object = request.arguments::<NfsFh3<'_>>()?;
    let (view, node) = request.enter(Door::Handle(object.0))?;
    let obj_attributes = nfs.beside_failure(&view, &node);
    Ok(match view.properties(&node) {
        Ok(properties) => {
            let body = Pathconf3resok {
                obj_attributes,
                linkmax: properties.links_max,
                name_max: properties.name_bytes_max,
                // A name that is too long is refused, never cut.
                no_trunc: true,
                chown_restricted: properties.chown_restricted,
                case_insensitive: properties.case_insensitive,
                case_preserving: properties.case_preserving,
            };
            ok(reply, &view, &body)
        }
        Err(status) => fail(reply, &view, status, &obj_attributes),
    })
}

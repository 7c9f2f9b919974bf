//! GETATTR (RFC 1813, 3.3.1): the attributes of an object. Half of all calls.

use comity_proto::nfs3::NfsFh3;
use comity_xdr::Encoder;

use crate::answer::{Answer, fail, ok};
use crate::attributes::fattr3;
use crate::program::Nfs3;
use crate::request::{Request, Stop};

pub(super) fn getattr(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let object = request.arguments::<NfsFh3<'_>>()?;
    let (view, object) = request.approach(object.0)?;
    Ok(match nfs.newest(&view, &object) {
        Ok(attr) => ok(reply, &view, &fattr3(&attr)),
        Err(status) => fail(reply, &view, status, &()),
    })
}

//! ACCESS (RFC 1813, 3.3.4): returns those of the requested rights that the caller has.

use comity_export::Door;
use comity_proto::nfs3::{Access3args, Access3resok};
use comity_vfs::Access;
use comity_xdr::Encoder;

use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};

pub(super) fn access(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Access3args<'_>>()?;
    let (view, node) = request.enter(Door::Handle(args.object.0))?;
    Ok(match view.access(&node, Access::from_bits(args.access)) {
        Ok((granted, attr)) => {
            let obj_attributes = nfs.beside(&view, &node, &attr);
            ok(reply, &view, &Access3resok { obj_attributes, access: granted.bits() })
        }
        Err(status) => fail(reply, &view, status, &nfs.beside_failure(&view, &node)),
    })
}

//! SETATTR (RFC 1813, 3.3.2): changes attributes, if the guard (the ctime that the client has seen)
//! still holds.

use comity_coherence::{Act, ChangesDirectories};
use comity_export::Door;
use comity_proto::nfs3::Setattr3args;
use comity_xdr::Encoder;

use crate::attributes::wcc_data;
use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};
use crate::settings::set_attr;
use crate::time::time;

pub(super) fn setattr(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Setattr3args<'_>>()?;
    let (view, node) = request.enter(Door::Handle(args.object.0))?;
    let set = set_attr(&args.new_attributes)?;
    let guard = args.guard.map(time).transpose()?;
    let act = Act::of_setting(&set, false);
    let cleared = nfs.host_call(request).clear_attributes((&view, &node), act);
    let set = cleared.and_then(|cleared| view.setattr(cleared.of_object(), &node, &set, guard));
    Ok(match set {
        Ok(change) => {
            let barrier = view.change_barrier(&node, None);
            ok(reply, &view, &wcc_data(&change)).behind(barrier)
        }
        Err(status) => fail(reply, &view, status, &nfs.wcc_beside_failure(&view, &node)),
    })
}

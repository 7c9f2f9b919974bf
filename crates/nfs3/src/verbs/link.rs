//! LINK (RFC 1813, 3.3.15): gives an object one name more. The directory and the object's count
//! of links are stable before the reply is sent.

use comity_coherence::ChangesDirectories;
use comity_export::Door;
use comity_proto::nfs3::{Link3args, Link3wcc};
use comity_xdr::Encoder;

use crate::attributes::{fattr3, wcc_data, wcc_now};
use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};

pub(super) fn link(nfs: &Nfs3, request: &Request<'_>, reply: &mut Encoder) -> Result<Answer, Stop> {
    let Link3args { file, link } = request.arguments()?;
    let (view, node) = request.enter(Door::Handle(file.0))?;
    let dir = view.admit(link.dir.0)?;
    let cleared = nfs.host_call(request).clear_link((&view, &node), &dir);
    Ok(match cleared.and_then(|cleared| view.link(cleared, &node, &dir, link.name.0)) {
        Ok(linked) => {
            let file_attributes = Some(fattr3(&linked.value));
            let linkdir_wcc = wcc_data(&linked.change);
            let barrier = view.change_barrier(&dir, Some(&node));
            ok(reply, &view, &Link3wcc { file_attributes, linkdir_wcc }).behind(barrier)
        }
        Err(status) => {
            let file_attributes = nfs.beside_failure(&view, &node);
            let linkdir_wcc = wcc_now(&view, &dir);
            fail(reply, &view, status, &Link3wcc { file_attributes, linkdir_wcc })
        }
    })
}

use comity_export::{Node, SeenMade, View};
use comity_proto::nfs3::Create3resok;
use comity_vfs::Result;
use comity_xdr::{Encoder, Opaque};

use crate::attributes::{fattr3, wcc_data, wcc_now};
use crate::reply::{Answer, fail, ok};

/// Appends the results of CREATE, MKDIR, SYMLINK and MKNOD: the new object and the change of
/// its directory. Both are stable before the reply is sent.
pub(super) fn answer(
    reply: &mut Encoder,
    view: &View<'_>,
    dir: &Node,
    made: Result<SeenMade>,
) -> Answer {
    match made {
        Ok(made) => {
            let sealed = view.seal(&made.value.node);
            let body = Create3resok {
                obj: Some(Opaque(sealed.bytes())),
                obj_attributes: Some(fattr3(&made.value.attr)),
                dir_wcc: wcc_data(&made.change),
            };
            let barrier = view.change_barrier(dir, Some(&made.value.node));
            ok(reply, view, &body).behind(barrier)
        }
        Err(status) => fail(reply, view, status, &wcc_now(view, dir)),
    }
}

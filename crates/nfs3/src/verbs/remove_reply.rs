use comity_export::{Node, View};
use comity_vfs::{Change, Result, Wire};
use comity_xdr::Encoder;

use crate::attributes::{wcc_data, wcc_now};
use crate::reply::{Answer, fail, ok};

/// Appends the results of REMOVE and RMDIR: the change of the directory, which is stable before
/// the reply is sent.
pub(super) fn answer(
    reply: &mut Encoder,
    view: &View<'_>,
    dir: &Node,
    change: Result<Change<Wire>>,
) -> Answer {
    match change {
        Ok(change) => ok(reply, view, &wcc_data(&change)).behind(view.change_barrier(dir, None)),
        Err(status) => fail(reply, view, status, &wcc_now(view, dir)),
    }
}

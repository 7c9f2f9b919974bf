use comity_export::{Node, View};
use comity_vfs::{Access, ReadInto, Result, Status};

use crate::act::Act;

/// The sticky bit of a directory's mode.
const STICKY: u32 = 0o1000;

/// Checks whether the caller may do an act at all. It is called before a delegation is recalled for
/// the act: a caller without rights to a file must not be able to end delegations of others.
pub(crate) fn judge(view: &View<'_>, node: &Node, act: Act<'_>) -> Result<()> {
    if act != Act::Read && view.rules().read_only {
        return Err(Status::RoFs);
    }
    match act {
        Act::Read => view.read(node, 0, 0, &mut ReadInto::new(&mut Vec::new())).map(drop),
        Act::Write | Act::Resize | Act::Tag => {
            grant(has(view, node, Access::MODIFY)? || view.owns(node)?, Status::Acces)
        }
        // A caller with the right to write may set the times to now.
        Act::Times { .. } | Act::Rights => {
            grant(view.owns(node)? || has(view, node, Access::MODIFY)?, Status::Perm)
        }
        Act::AddName => grant(has(view, node, Access::EXTEND)?, Status::Acces),
        Act::RemoveName => grant(has(view, node, Access::DELETE)?, Status::Acces),
        Act::Rename => {
            let (granted, _) = view.access(node, Access::EXTEND | Access::DELETE)?;
            grant(granted.contains(Access::EXTEND | Access::DELETE), Status::Acces)
        }
        Act::Link(dir) => {
            grant(has(view, dir, Access::EXTEND)?, Status::Acces)?;
            let either = Access::READ | Access::MODIFY;
            grant(view.owns(node)? || has(view, node, either)?, Status::Perm)
        }
        Act::Unlink(dir) => {
            grant(has(view, dir, Access::DELETE)?, Status::Acces)?;
            let is_sticky = view.getattr(dir)?.mode.bits() & STICKY != 0;
            grant(!is_sticky || view.owns(node)? || view.owns(dir)?, Status::Perm)
        }
    }
}

/// Returns whether the caller has any of these rights.
fn has(view: &View<'_>, node: &Node, wanted: Access) -> Result<bool> {
    Ok(view.access(node, wanted)?.0.intersects(wanted))
}

const fn grant(granted: bool, otherwise: Status) -> Result<()> {
    if granted { Ok(()) } else { Err(otherwise) }
}

//! Cloaking: to the caller, an object that the cloak hides does not exist.

use comity_cloak::Verdict;
use comity_vfs::{Access, Attr, Cred, Disk, Name, Result, Status};

use super::rights::Passage;
use super::{Node, View};

impl View<'_> {
    #[inline]
    pub(super) fn is_cloaked(&self) -> bool {
        self.resolved.is_cloaked()
    }

    /// Returns whether there may be objects that the caller may not know of, for whichever reason.
    #[inline]
    pub(super) fn is_guarded(&self) -> bool {
        self.resolved.is_guarded()
    }

    /// Returns whether a caller with these ids may know of an object with these attributes.
    #[inline]
    pub(super) fn shows(&self, cred: &Cred<Disk>, attr: &Attr<Disk>) -> bool {
        self.rules().cloak.shows(cred, attr.uid, attr.gid, attr.mode)
    }

    pub(super) fn verdict(&self, attr: &Attr<Disk>) -> Verdict {
        self.rules().cloak.verdict(self.cred(), attr.uid, attr.gid, attr.mode)
    }

    /// Refuses a name whose object the caller may not know of, as if it were not there.
    pub(super) fn not_hidden(&self, at: Passage<'_>, dir: &Node, name: Name<'_>) -> Result<()> {
        if self.is_hidden(at, dir, name)? { Err(Status::NoEnt) } else { Ok(()) }
    }

    /// Returns whether a name stands for an object that the caller may not know of.
    pub(super) fn is_hidden(&self, at: Passage<'_>, dir: &Node, name: Name<'_>) -> Result<bool> {
        if !self.is_guarded() {
            return Ok(false);
        }
        match at.fs.lookup(at.cred, dir.handle(), name) {
            Ok(entry) => {
                self.met(dir, name, &entry.node.handle);
                let hidden = !self.knows(&entry.node.handle, &entry.node.attr);
                self.resolved.counters().hide(hidden.into());
                Ok(hidden)
            }
            Err(Status::NoEnt) => Ok(false),
            Err(status) => Err(status),
        }
    }

    /// Why a name could not be put into a directory. That a hidden object has it can be kept secret
    /// from a caller who may not add a name there in any case; from others it cannot. Such a caller
    /// is not told of other reasons either, which the file system looks for only where the name is
    /// free: somebody else's file that must not be linked to, say.
    pub(super) fn told(&self, at: Passage<'_>, dir: &Node, name: Name<'_>, why: Status) -> Status {
        let may_be_secret = match why {
            Status::Exist => self.is_hidden(at, dir, name) == Ok(true),
            Status::Perm => self.is_guarded(),
            _ => false,
        };
        if may_be_secret && !may_add(at, dir).unwrap_or(false) { Status::Acces } else { why }
    }
}

/// Returns whether the caller may put names into a directory.
pub(super) fn may_add(at: Passage<'_>, dir: &Node) -> Result<bool> {
    let wanted = Access::EXTEND | Access::LOOKUP;
    let (granted, _) = at.fs.access(at.cred, dir.handle(), wanted)?;
    Ok(granted.contains(wanted))
}

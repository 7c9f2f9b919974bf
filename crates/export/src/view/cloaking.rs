//! Cloaking: to the caller, an object that the cloak hides does not exist.

use comity_cloak::Verdict;
use comity_vfs::{Access, Attr, Cred, Disk, Name, Result, Status};

use super::rights::Passage;
use super::{Node, View};

impl View<'_> {
    /// Returns whether objects may be hidden from the caller, for any reason.
    #[inline]
    pub(super) fn is_guarded(&self) -> bool {
        self.resolved.is_guarded()
    }

    /// Returns whether an object with these attributes is visible to a caller with these ids.
    #[inline]
    pub(super) fn shows(&self, cred: &Cred<Disk>, attr: &Attr<Disk>) -> bool {
        self.rules().cloak.shows(cred, attr.uid, attr.gid, attr.mode)
    }

    pub(super) fn verdict(&self, attr: &Attr<Disk>) -> Verdict {
        self.rules().cloak.verdict(self.cred(), attr.uid, attr.gid, attr.mode)
    }

    /// Returns the error of a missing name if the object of the name is hidden from the caller.
    pub(super) fn not_hidden(&self, at: Passage<'_>, dir: &Node, name: Name<'_>) -> Result<()> {
        if self.may_be_hidden(dir)? && self.is_hidden(at, dir, name)? {
            return Err(Status::NoEnt);
        }
        Ok(())
    }

    /// Returns whether some object in a directory may be hidden from the caller. A look-up of the
    /// name is needed to find out whether an object is, and costs as much as many changes.
    pub(super) fn may_be_hidden(&self, dir: &Node) -> Result<bool> {
        Ok(self.is_guarded() && (self.has_cloak() || !self.sees_all_below(dir)?))
    }

    /// Returns whether the object of a name is hidden from the caller.
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

    /// Returns the error for a name that could not be added to a directory. If a hidden object has
    /// the name, that can be concealed only from a caller who may not add names there in any case.
    /// Such a caller gets no other error either that the file system returns only if the name is
    /// free, such as for a file of another user that must not be linked.
    pub(super) fn told(&self, at: Passage<'_>, dir: &Node, name: Name<'_>, why: Status) -> Status {
        let may_be_secret = match why {
            Status::Exist => self.is_hidden(at, dir, name) == Ok(true),
            Status::Perm => self.is_guarded(),
            _ => false,
        };
        if may_be_secret && !may_add(at, dir).unwrap_or(false) { Status::Acces } else { why }
    }
}

/// Returns whether the caller may add names to a directory.
pub(super) fn may_add(at: Passage<'_>, dir: &Node) -> Result<bool> {
    let wanted = Access::EXTEND | Access::LOOKUP;
    let (granted, _) = at.fs.access(at.cred, dir.handle(), wanted)?;
    Ok(granted.contains(wanted))
}

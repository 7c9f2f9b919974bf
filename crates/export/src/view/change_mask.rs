//! Directories that look changed in every reply, so that no client answers one user out of what it
//! keeps for another (`no_client_cache`).

use comity_grants::Operation;
use comity_vfs::{Attr, Disk, FileType, Result, Time};

use super::{Node, View};

impl View<'_> {
    /// Returns whether the object must look changed each time the caller sees it.
    #[inline]
    pub(super) fn looks_changed(&self, attr: &Attr<Disk>) -> bool {
        self.resolved.is_restless() && attr.file_type == FileType::Directory
    }

    /// Returns whether a file may be delegated. Where clients must not cache for several users,
    /// only a file that is hidden from nobody may be. A caller that acts by grants must have been
    /// granted to read it: a client reads what it was delegated without asking.
    ///
    /// # Errors
    /// [`comity_vfs::Status`].
    pub fn may_be_delegated(&self, node: &Node) -> Result<bool> {
        if let Some(holder) = self.resolved.holder()
            && self.pass(holder, node.handle(), Operation::Read)?.is_none()
        {
            return Ok(false);
        }
        if !self.rules().no_client_cache || !self.is_cloaked() {
            return Ok(true);
        }
        let attr = self.fs().getattr(node.handle())?;
        Ok(self.rules().cloak.covering(attr.uid, attr.gid).is_none())
    }

    /// The ctime that a guard means which holds what the caller was shown: of a directory that
    /// looks changed only the seconds were true, and they are all that can be held against it.
    pub(super) fn guarded(&self, node: &Node, guard: Option<Time>) -> Result<Option<Time>> {
        let Some(shown) = guard.filter(|_| self.rules().no_client_cache) else { return Ok(guard) };
        let attr = self.fs().getattr(node.handle())?;
        let means = self.looks_changed(&attr) && attr.ctime.seconds == shown.seconds;
        Ok(Some(if means { attr.ctime } else { shown }))
    }
}

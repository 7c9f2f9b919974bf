//! Makes directories look changed in every reply, so that no client answers one user from its cache
//! for another (`no_client_cache`).

use comity_grants::Operation;
use comity_vfs::{Attr, Disk, FileType, Result, Time};

use super::{Node, View};

impl View<'_> {
    /// Returns whether the object must look changed each time the caller sees it.
    #[inline]
    pub(super) fn looks_changed(&self, attr: &Attr<Disk>) -> bool {
        self.resolved.shows_new_change() && attr.file_type == FileType::Directory
    }

    /// Returns whether a file may be delegated. If clients must not cache for several users, only
    /// a file that no cloak covers may be, whoever opens it: the client's root sees all, and its
    /// other users would read what their root was delegated. A caller that acts by grants needs a
    /// grant to read it, because a client reads a delegated file without asking.
    ///
    /// # Errors
    /// [`comity_vfs::Status`].
    pub fn may_be_delegated(&self, node: &Node) -> Result<bool> {
        if let Some(holder) = self.resolved.holder()
            && self.pass(holder, node.handle(), Operation::Read)?.is_none()
        {
            return Ok(false);
        }
        let rules = self.rules();
        if !rules.no_client_cache || rules.cloak.is_empty() {
            return Ok(true);
        }
        let attr = self.fs().getattr(node.handle())?;
        Ok(rules.cloak.covering(attr.uid, attr.gid).is_none())
    }

    /// Returns the ctime that a guard from the wire stands for. For a directory that looks changed,
    /// the caller was shown true seconds only, so only they are compared.
    pub(super) fn guarded(&self, node: &Node, guard: Option<Time>) -> Result<Option<Time>> {
        let Some(shown) = guard.filter(|_| self.rules().no_client_cache) else { return Ok(guard) };
        let attr = self.fs().getattr(node.handle())?;
        let means = self.looks_changed(&attr) && attr.ctime.seconds == shown.seconds;
        Ok(Some(if means { attr.ctime } else { shown }))
    }
}

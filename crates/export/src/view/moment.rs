//! Directories that look changed in every reply, so that no client answers one user out of what it
//! keeps for another (`no_client_cache`).

use comity_vfs::{Attr, FileType, Result, Side, Time, Wire};

use super::{Node, View};

impl View<'_> {
    /// Whether the caller is never to see the same of this object twice.
    #[inline]
    pub(super) fn looks_changed<S: Side>(&self, attr: &Attr<S>) -> bool {
        self.pass.is_restless() && attr.file_type == FileType::Directory
    }

    /// Whether a client may be left alone with a file. Where it would tell all its users of it, it
    /// may only be one that is hidden from nobody.
    ///
    /// # Errors
    /// [`comity_vfs::Status`].
    pub fn may_be_delegated(&self, node: &Node) -> Result<bool> {
        if !self.rules().no_client_cache || !self.is_cloaked() {
            return Ok(true);
        }
        let attr = self.fs().getattr(&node.0)?;
        Ok(self.rules().cloak.covering(attr.uid, attr.gid).is_none())
    }

    /// The same attributes at another moment.
    pub(super) fn at_another_moment(&self, attr: Attr<Wire>) -> Attr<Wire> {
        let nanoseconds = self.pass.export().moment_nanoseconds();
        let changed = |time| Time { nanoseconds, ..time };
        Attr { mtime: changed(attr.mtime), ctime: changed(attr.ctime), ..attr }
    }

    /// The ctime that a guard means which holds what the caller was shown: of a directory that
    /// looks changed only the seconds were true, and they are all that can be held against it.
    pub(super) fn guarded(&self, node: &Node, guard: Option<Time>) -> Result<Option<Time>> {
        let Some(shown) = guard.filter(|_| self.rules().no_client_cache) else { return Ok(guard) };
        let attr = self.fs().getattr(&node.0)?;
        let means = self.looks_changed(&attr) && attr.ctime.seconds == shown.seconds;
        Ok(Some(if means { attr.ctime } else { shown }))
    }
}

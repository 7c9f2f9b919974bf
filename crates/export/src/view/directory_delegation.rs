use comity_vfs::{Access, FileType, Result, Status};

use super::{Node, View};
use crate::KeyUse;

impl View<'_> {
    /// Returns whether a directory may be delegated to the caller's client. The client then answers
    /// listings for all its users from its cache, so the directory may not be delegated if their
    /// views differ: if files are cloaked, or visible only by a right to them. The caller must have
    /// the right to use the directory.
    ///
    /// # Errors
    /// [`Status::NotDir`]; [`Status`].
    pub fn may_delegate_directory(&self, dir: &Node) -> Result<bool> {
        if self.getattr(dir)?.file_type != FileType::Directory {
            return Err(Status::NotDir);
        }
        let rules = self.rules();
        let views_differ = !rules.cloak.is_empty() || rules.key_use != KeyUse::AccountsOnly;
        // Other clients of Ceph change directories without notice to this server.
        let others_change = self.export().settings().ceph.path.is_some();
        if !rules.dir_delegations.are_granted()
            || views_differ
            || rules.no_client_cache
            || others_change
        {
            return Ok(false);
        }
        let (granted, _) = self.access(dir, Access::READ | Access::LOOKUP)?;
        Ok(granted.intersects(Access::READ | Access::LOOKUP))
    }
}

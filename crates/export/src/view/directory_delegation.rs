use comity_vfs::{Access, FileKey, FileType, NamedObject, NoticedAttributes, Result, Status};

use super::{Node, View};
use crate::{DirectoryWriters, KeyUse, Plan};

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

    /// Returns whether clients are told of every change of attributes of the objects in the export,
    /// if they ask for it: the export says so, and nobody changes them but this server, and no data
    /// server.
    #[must_use]
    pub fn may_notify_of_children(&self) -> bool {
        let rules = self.rules().dir_delegations;
        let only_here = rules.writers == Some(DirectoryWriters::ServerOnly);
        let is_wanted = rules.delay_seconds_max.is_some();
        is_wanted && only_here && self.fs().placement().is_none() && !self.plan.stores_data()
    }
}

impl Plan {
    /// Returns the attributes of an object that are the same for all clients, for a notification;
    /// none if it does not exist any more.
    #[must_use]
    pub fn noticed(&self, object: &FileKey) -> Option<(NamedObject, NoticedAttributes)> {
        let attr = self.export_of(object)?.fs().getattr(&object.handle).ok()?;
        let named = NamedObject { key: *object, fileid: attr.fileid, file_type: attr.file_type };
        Some((named, NoticedAttributes::of(&attr)))
    }
}

use comity_idmap::Owner;
use comity_vfs::{Gid, Result, Status, Uid, Wire};

use super::View;

/// Owners as text, for NFSv4. The numbers are those that the caller sees in attributes and ACLs and
/// may set; maps convert them to those on disk.
impl View<'_> {
    /// A user as the caller sees it: a name of its domain, or a number.
    #[must_use]
    pub fn owner_out(&self, uid: Uid<Wire>) -> Owner<'_> {
        self.rules().ids.owners.user_out(uid)
    }

    /// A group as the caller sees it.
    #[must_use]
    pub fn owner_group_out(&self, gid: Gid<Wire>) -> Owner<'_> {
        self.rules().ids.owners.group_out(gid)
    }

    /// Returns the user that a text stands for.
    ///
    /// # Errors
    /// [`Status::BadOwner`] if the text is neither a number nor a name of its domain.
    pub fn owner_in(&self, text: &[u8]) -> Result<Uid<Wire>> {
        self.rules().ids.owners.user_in(text).map_err(|_| Status::BadOwner)
    }

    /// Returns the group that a text stands for.
    ///
    /// # Errors
    /// [`Status::BadOwner`].
    pub fn owner_group_in(&self, text: &[u8]) -> Result<Gid<Wire>> {
        self.rules().ids.owners.group_in(text).map_err(|_| Status::BadOwner)
    }
}

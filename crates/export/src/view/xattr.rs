use comity_grants::Operation;
use comity_placement::FENCE_ATTRIBUTE;
use comity_vfs::{Acl, AclKind, Change, Changed, Name, Result, Seek, Status, Wire, XattrMode};

use super::rights::DirectoryChange;
use super::{Clearance, Node, View};

/// Verbs that only NFSv4 uses.
impl View<'_> {
    /// See [`comity_vfs::Fs::getacl`]; the ids of users and groups in it are those of the caller's
    /// side.
    ///
    /// # Errors
    /// [`Status`].
    pub fn getacl(&self, node: &Node, kind: AclKind) -> Result<Option<Acl<Wire>>> {
        let acl = self.gate(node, Operation::Look)?.fs.getacl(node.handle(), kind)?;
        Ok(acl.map(|acl| self.rules().ids.acl_out(self.resolved.caller(), &acl)))
    }

    /// See [`comity_vfs::Fs::setacl`].
    ///
    /// # Errors
    /// [`Status::BadOwner`] if a user or group in it has no id on disk; [`Status`].
    pub fn setacl(
        &self,
        cleared: Clearance<'_>,
        node: &Node,
        kind: AclKind,
        acl: Option<&Acl<Wire>>,
    ) -> Result<Change<Wire>> {
        let at = self.before_change(DirectoryChange::Attributes(node))?;
        let acl = acl.map(|acl| self.rules().ids.acl_in(acl)).transpose();
        let acl = acl.map_err(|_| Status::BadOwner)?;
        let change = at.fs.setacl(at.cred, node.handle(), kind, acl.as_ref());
        Ok(self.change_out(self.noting(cleared, node, change)?))
    }

    /// See [`comity_vfs::Fs::getxattr`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn getxattr(&self, node: &Node, name: &[u8]) -> Result<Vec<u8>> {
        if let Some(value) = self.grant_xattr(node, name)? {
            return Ok(value);
        }
        let at = self.gate(node, Operation::Read)?;
        at.fs.getxattr(at.cred, node.handle(), xattr_name(name)?)
    }

    /// See [`comity_vfs::Fs::setxattr`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn setxattr(
        &self,
        cleared: Clearance<'_>,
        node: &Node,
        name: &[u8],
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Wire>> {
        let at = self.before_change(DirectoryChange::Attributes(node))?;
        let (file, as_name) = (node.handle(), xattr_name(name)?);
        let set = || at.fs.setxattr(at.cred, file, as_name, value, mode);
        let change = match self.plan.layouts() {
            Some(layouts) if name == FENCE_ATTRIBUTE => layouts.fences().raise(file, value, set),
            _ => set(),
        };
        Ok(self.change_out(self.noting(cleared, node, change)?))
    }

    /// See [`comity_vfs::Fs::listxattr`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn listxattr(&self, node: &Node) -> Result<Vec<Box<[u8]>>> {
        let at = self.gate(node, Operation::Read)?;
        at.fs.listxattr(at.cred, node.handle())
    }

    /// See [`comity_vfs::Fs::seek`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn seek(&self, node: &Node, offset: u64, what: Seek) -> Result<u64> {
        let at = self.gate(node, Operation::Read)?;
        at.fs.seek(at.cred, node.handle(), offset, what)
    }

    /// See [`comity_vfs::Fs::allocate`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn allocate(
        &self,
        cleared: Clearance<'_>,
        node: &Node,
        offset: u64,
        length: u64,
    ) -> Result<Change<Wire>> {
        let at = self.gate(node, Operation::Write)?;
        let change = at.fs.allocate(at.cred, node.handle(), offset, length);
        Ok(self.change_out(self.noting(cleared, node, change)?))
    }

    /// See [`comity_vfs::Fs::deallocate`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn deallocate(
        &self,
        cleared: Clearance<'_>,
        node: &Node,
        offset: u64,
        length: u64,
    ) -> Result<Change<Wire>> {
        let at = self.gate(node, Operation::Write)?;
        let change = at.fs.deallocate(at.cred, node.handle(), offset, length);
        Ok(self.change_out(self.noting(cleared, node, change)?))
    }

    /// See [`comity_vfs::Fs::copy`]; both nodes are of this export.
    ///
    /// # Errors
    /// [`Status`].
    pub fn copy(
        &self,
        cleared: Clearance<'_>,
        source: (&Node, u64),
        target: (&Node, u64),
        length: u64,
    ) -> Result<Changed<u64, Wire>> {
        let (from, to) = ((source.0.handle(), source.1), (target.0.handle(), target.1));
        let reading = self.gate(source.0, Operation::Read)?;
        let at = self.gate(target.0, Operation::Write)?.together(reading)?;
        let copied = at.fs.copy(at.cred, from, to, length);
        let Changed { value, change } = self.noting(cleared, target.0, copied)?;
        Ok(Changed { value, change: self.change_out(change) })
    }

    /// See [`comity_vfs::Fs::clone_range`]; both nodes are of this export.
    ///
    /// # Errors
    /// [`Status`].
    pub fn clone_range(
        &self,
        cleared: Clearance<'_>,
        source: (&Node, u64),
        target: (&Node, u64),
        length: u64,
    ) -> Result<Change<Wire>> {
        let (from, to) = ((source.0.handle(), source.1), (target.0.handle(), target.1));
        let reading = self.gate(source.0, Operation::Read)?;
        let at = self.gate(target.0, Operation::Write)?.together(reading)?;
        let change = at.fs.clone_range(at.cred, from, to, length);
        Ok(self.change_out(self.noting(cleared, target.0, change)?))
    }
}

/// Checks a name of an extended attribute. It may contain slashes on disk, but not here (RFC 8276,
/// 8.1).
fn xattr_name(name: &[u8]) -> Result<Name<'_>> {
    Name::new(name).map_err(|status| match status {
        Status::NameTooLong => status,
        _ => Status::Inval,
    })
}

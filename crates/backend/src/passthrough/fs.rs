use std::ops::ControlFlow;

use comity_vfs::{
    Access, Acl, AclKind, Attr, Change, Changed, Create, Cred, DirectoryHold, Disk, Entry,
    FileHold, Fs, Handle, Listed, Listing, LocalLocks, LocalUse, Made, Name, Node, Properties,
    RangeLock, Read, ReadInto, Result, Seek, SetAttr, Space, Special, Target, Time, Written,
    XattrMode,
};

use super::Passthrough;
use super::attributes::attr::attr;

impl Fs for Passthrough {
    fn root(&self) -> Handle {
        self.root
    }

    fn volume(&self, node: &Handle) -> u64 {
        self.volume_number(node)
    }

    fn properties(&self, node: &Handle) -> Result<Properties> {
        Passthrough::properties(self, node)
    }

    fn owns(&self, cred: &Cred<Disk>, node: &Handle) -> Result<bool> {
        Passthrough::owns(self, cred, node)
    }

    fn statfs(&self, _cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        Passthrough::statfs(self, node)
    }

    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        self.attributes(node)
    }

    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        Passthrough::setattr(self, cred, node, set, guard)
    }

    fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        let (node, stat) = self.look(node)?;
        let granted = self.granted(cred, &node, &stat, wanted)?;
        Ok((granted, attr(&node.mount, &stat)))
    }

    fn lookup(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>> {
        Passthrough::lookup(self, cred, dir, name)
    }

    fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        Passthrough::parent(self, cred, dir)
    }

    fn directories_of(&self, node: &Handle) -> Result<Vec<Handle>> {
        Passthrough::directories_of(self, node)
    }

    fn readlink(&self, _cred: &Cred<Disk>, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        Passthrough::readlink(self, node)
    }

    fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        Passthrough::read(self, cred, node, offset, count, into)
    }

    fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        Passthrough::write(self, cred, node, offset, data)
    }

    fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        Passthrough::write_opened(self, cred, node, offset, data)
    }

    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        Passthrough::commit(self, node)
    }

    fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        Passthrough::create(self, cred, dir, name, how)
    }

    fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        Passthrough::mkdir(self, cred, dir, name, set)
    }

    fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        Passthrough::symlink(self, cred, dir, name, target, set)
    }

    fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        Passthrough::mknod(self, cred, dir, name, special, set)
    }

    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        Passthrough::remove(self, cred, dir, name)
    }

    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        Passthrough::rmdir(self, cred, dir, name)
    }

    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        Passthrough::rename(self, cred, source, target)
    }

    fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        Passthrough::link(self, cred, node, dir, name)
    }

    fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<Attr<Disk>> {
        Passthrough::readdir(self, cred, dir, cookie, wanted, visit)
    }

    fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        Passthrough::getacl(self, node, kind)
    }

    fn setacl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        Passthrough::setacl(self, cred, node, kind, acl)
    }

    fn getxattr(&self, cred: &Cred<Disk>, node: &Handle, name: Name<'_>) -> Result<Vec<u8>> {
        Passthrough::getxattr(self, cred, node, name)
    }

    fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        Passthrough::setxattr(self, cred, node, name, value, mode)
    }

    fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        Passthrough::listxattr(self, cred, node)
    }

    fn seek(&self, cred: &Cred<Disk>, node: &Handle, offset: u64, what: Seek) -> Result<u64> {
        Passthrough::seek(self, cred, node, offset, what)
    }

    fn allocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        Passthrough::allocate(self, cred, node, offset, length)
    }

    fn deallocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        Passthrough::deallocate(self, cred, node, offset, length)
    }

    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        Some(self)
    }

    fn release_removed(&self) {
        self.nodes.release_removed();
    }

    fn copy(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        Passthrough::copy(self, cred, source, target, length)
    }

    fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        Passthrough::clone_range(self, cred, source, target, length)
    }
}

impl LocalLocks for Passthrough {
    fn hold_range(&self, node: &Handle, bytes: (u64, u64), lock: RangeLock) -> Result<bool> {
        Passthrough::hold_range(self, node, bytes, lock)
    }

    fn is_range_free(&self, node: &Handle, bytes: (u64, u64), lock: RangeLock) -> Result<bool> {
        Passthrough::is_range_free(self, node, bytes, lock)
    }

    fn hold_file(&self, node: &Handle, hold: FileHold) -> Result<bool> {
        Passthrough::hold_file(self, node, hold)
    }

    fn may_hold_directories(&self, hold: DirectoryHold) -> std::result::Result<(), String> {
        Passthrough::may_hold_directories(self, hold)
    }

    fn poll_wanted(&self) -> Option<(Handle, LocalUse)> {
        Passthrough::poll_wanted(self)
    }
}

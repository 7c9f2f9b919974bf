//! The `Fs` of version 4: each verb calls the function that does it.

use comity_proto::nfs4::operation as op;
use comity_vfs::{
    Access, Attr, Change, Changed, Create, Cred, Disk, Entry, Fs, Handle, Listed, Made, Name, Node,
    OpenFiles, Properties, Read, ReadInto, Result, Seek, SetAttr, Space, Special, Stability,
    Target, Time, Written, XattrMode,
};

use super::listing::Visit;
use super::remote4::Remote4;

impl Fs for Remote4 {
    fn root(&self) -> Handle {
        self.root
    }

    fn volume(&self, _: &Handle) -> u64 {
        self.volume
    }

    fn properties(&self, node: &Handle) -> Result<Properties> {
        self.properties(node)
    }

    fn statfs(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        self.statfs(cred, node)
    }

    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        self.getattr(node)
    }

    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        self.setattr(cred, node, set, guard)
    }

    fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        self.access(cred, node, wanted)
    }

    fn lookup(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>> {
        self.lookup(cred, dir, name)
    }

    fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        self.parent(cred, dir)
    }

    fn readlink(&self, cred: &Cred<Disk>, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        self.readlink(cred, node)
    }

    fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        self.read(cred, node, (offset, count), into)
    }

    fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        self.write(cred, node, offset, data)
    }

    fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        self.write_opened(cred, node, offset, data)
    }

    fn write_stable(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<(Written<Disk>, Stability)> {
        self.write_stable(cred, node, offset, data)
    }

    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        self.commit(node)
    }

    fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        self.create(cred, dir, name, how)
    }

    fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.mkdir(cred, dir, name, set)
    }

    fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.symlink(cred, (dir, name), target, set)
    }

    fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.mknod(cred, (dir, name), special, set)
    }

    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.remove_object(cred, (dir, name), false)
    }

    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.remove_object(cred, (dir, name), true)
    }

    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        self.rename(cred, source, target)
    }

    fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        self.link(cred, node, (dir, name))
    }

    fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: &mut Visit<'_>,
    ) -> Result<Attr<Disk>> {
        self.readdir(cred, dir, (cookie, wanted), visit)
    }

    fn getxattr(&self, cred: &Cred<Disk>, node: &Handle, name: Name<'_>) -> Result<Vec<u8>> {
        self.getxattr(cred, node, name)
    }

    fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        self.setxattr(cred, node, (name, value), mode)
    }

    fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        self.listxattr(cred, node)
    }

    fn seek(&self, cred: &Cred<Disk>, node: &Handle, offset: u64, what: Seek) -> Result<u64> {
        self.seek(cred, node, offset, what)
    }

    fn allocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        self.change_space(cred, node, op::ALLOCATE, (offset, length))
    }

    fn deallocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        self.change_space(cred, node, op::DEALLOCATE, (offset, length))
    }

    fn open_files(&self) -> Option<&dyn OpenFiles> {
        Some(self)
    }

    fn copy(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        self.copy(cred, source, target, length)
    }

    fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        self.clone_range(cred, source, target, length)
    }
}

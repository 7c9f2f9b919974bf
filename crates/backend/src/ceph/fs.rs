use std::ops::ControlFlow;

use comity_vfs::{
    Access, Acl, AclKind, Attr, Change, Changed, Create, Cred, Disk, Entry, Fs, Handle, Listed,
    Listing, LocalLocks, Made, Name, Node, Properties, Read, ReadInto, Result, SetAttr, Space,
    Special, Stability, Target, Time, Written, XattrMode,
};

use super::Ceph;
use super::limits::FILE_SIZE_MAX;
use crate::blocking::blocking;

/// Every verb may wait for the cluster, also one that is answered from the cache of libcephfs most
/// of the time.
impl Fs for Ceph {
    fn root(&self) -> Handle {
        self.root
    }

    fn volume(&self, _node: &Handle) -> u64 {
        self.volume
    }

    fn properties(&self, node: &Handle) -> Result<Properties> {
        blocking(|| self.find(node))?;
        Ok(Properties {
            file_size_max: FILE_SIZE_MAX,
            name_bytes_max: comity_vfs::limits::NAME_BYTES_MAX as u32,
            links_max: u32::MAX,
            time_delta: Time { seconds: 0, nanoseconds: 1 },
            hard_links: true,
            symbolic_links: true,
            chown_restricted: true,
            case_insensitive: false,
            case_preserving: true,
            clone_bytes: 4096,
            maker: None,
        })
    }

    fn statfs(&self, _cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        blocking(|| self.space(node))
    }

    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        blocking(|| self.find(node).map(|(_, _, attr)| attr))
    }

    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        blocking(|| self.set(cred, node, set, guard))
    }

    fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        blocking(|| self.rights(cred, node, wanted))
    }

    fn lookup(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>> {
        blocking(|| self.look_up(cred, dir, name))
    }

    fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        blocking(|| self.parent_of(cred, dir))
    }

    fn readlink(&self, _cred: &Cred<Disk>, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        blocking(|| self.target_of(node))
    }

    fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        blocking(|| self.read_data(cred, node, (offset, count), into))
    }

    fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        blocking(|| self.write_data((cred, false), node, offset, data))
    }

    fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        blocking(|| self.write_data((cred, true), node, offset, data)).map(|written| written.value)
    }

    fn write_stable(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<(Written<Disk>, Stability)> {
        blocking(|| self.write_through(cred, node, offset, data))
    }

    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        blocking(|| self.commit_object(node))
    }

    fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        blocking(|| self.make_file(cred, dir, name, how))
    }

    fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        blocking(|| self.make_directory(cred, dir, name, set))
    }

    fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        blocking(|| self.make_symlink(cred, (dir, name), target, set))
    }

    fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        blocking(|| self.make_special(cred, (dir, name), special, set))
    }

    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        blocking(|| self.unlink(cred, dir, name))
    }

    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        blocking(|| self.remove_directory(cred, dir, name))
    }

    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        blocking(|| self.move_name(cred, source, target))
    }

    fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        blocking(|| self.add_link(cred, node, dir, name))
    }

    fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<Attr<Disk>> {
        blocking(|| self.list(cred, (dir, cookie), wanted, visit))
    }

    fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        blocking(|| self.get_acl(node, kind))
    }

    fn setacl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        blocking(|| self.set_acl(cred, node, kind, acl))
    }

    fn getxattr(&self, cred: &Cred<Disk>, node: &Handle, name: Name<'_>) -> Result<Vec<u8>> {
        blocking(|| self.get_attribute(cred, node, name))
    }

    fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        blocking(|| self.set_attribute(cred, (node, name), value, mode))
    }

    fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        blocking(|| self.attribute_names(cred, node))
    }

    fn deallocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        blocking(|| self.punch_hole(cred, node, offset, length))
    }

    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        Some(self)
    }

    fn release_removed(&self) {
        self.end_late_holds();
        self.close_idle_files();
    }
}

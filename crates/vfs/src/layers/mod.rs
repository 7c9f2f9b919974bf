//! Wrappers: an [`Fs`] around another `Fs`. It sees every call of a verb, and may answer it itself.
//!
//! [`Layer`] passes all verbs on; its [`Hook`] decides what is done in addition: [`ReadOnly`],
//! [`Faults`], [`Recorder`], [`Metrics`].

mod faults;
mod metrics;
mod opens;
mod read_only;
mod record;
mod verb;

use std::ops::ControlFlow;
use std::sync::Arc;

pub use faults::{Faults, When};
pub use metrics::{Metrics, Sample};
pub use read_only::ReadOnly;
pub use record::{Event, Recorder};
pub use verb::Verb;

use crate::{
    Access, Acl, AclKind, Attr, Change, Changed, Create, Cred, Disk, Entry, Fs, Handle, Listed,
    Listing, LocalLocks, Made, Name, Node, OpenAccess, OpenFiles, Properties, Read, ReadInto,
    Result, Seek, SetAttr, Space, Special, Stability, Target, Time, Written, XattrMode,
};

/// The hook of a layer, called for the verbs that pass it.
pub trait Hook: Send + Sync {
    /// Handles one call of `verb` on `node` (the first one, if there are two): does `work`, or
    /// answers itself.
    ///
    /// # Errors
    /// Those of `work`, and its own.
    fn around<T>(&self, verb: Verb, node: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T>;

    /// Returns how many of `length` bytes a write may take; by default, all of them.
    fn write_bytes(&self, length: usize) -> usize {
        length
    }

    /// Returns the part of the granted rights that is passed on; by default, all of them.
    fn rights(&self, granted: Access) -> Access {
        granted
    }

    /// Returns the interface to other programs of this machine that replaces the file system's own;
    /// with `None`, the file system's own is used.
    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        None
    }

    /// Decides whether a file may be opened; `makes` is true if the open may create it. By default,
    /// every open is allowed.
    ///
    /// # Errors
    /// The reason for the refusal.
    fn opens(&self, access: OpenAccess, makes: bool) -> Result<()> {
        let _ = (access, makes);
        Ok(())
    }
}

impl<H: Hook> Hook for Arc<H> {
    fn around<T>(&self, verb: Verb, node: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        H::around(self, verb, node, work)
    }

    fn write_bytes(&self, length: usize) -> usize {
        H::write_bytes(self, length)
    }

    fn rights(&self, granted: Access) -> Access {
        H::rights(self, granted)
    }

    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        H::local_locks(self)
    }

    fn opens(&self, access: OpenAccess, makes: bool) -> Result<()> {
        H::opens(self, access, makes)
    }
}

/// A file system with a [`Hook`] in front of it.
pub struct Layer<H> {
    fs: Arc<dyn Fs>,
    hook: H,
}

impl<H: Hook> Layer<H> {
    /// Puts `hook` in front of `fs`. A caller that needs the hook later passes an [`Arc`] of it.
    #[must_use]
    pub fn new(fs: Arc<dyn Fs>, hook: H) -> Self {
        Self { fs, hook }
    }
}

impl<H: Hook> Fs for Layer<H> {
    fn root(&self) -> Handle {
        self.fs.root()
    }

    fn volume(&self, node: &Handle) -> u64 {
        self.fs.volume(node)
    }

    fn properties(&self, node: &Handle) -> Result<Properties> {
        self.hook.around(Verb::Properties, node, || self.fs.properties(node))
    }

    fn owns(&self, cred: &Cred<Disk>, node: &Handle) -> Result<bool> {
        self.fs.owns(cred, node)
    }

    fn statfs(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        self.hook.around(Verb::Statfs, node, || self.fs.statfs(cred, node))
    }

    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        self.hook.around(Verb::Getattr, node, || self.fs.getattr(node))
    }

    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        self.hook.around(Verb::Setattr, node, || self.fs.setattr(cred, node, set, guard))
    }

    fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        let (granted, attr) =
            self.hook.around(Verb::Access, node, || self.fs.access(cred, node, wanted))?;
        Ok((self.hook.rights(granted), attr))
    }

    fn lookup(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>> {
        self.hook.around(Verb::Lookup, dir, || self.fs.lookup(cred, dir, name))
    }

    fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        self.hook.around(Verb::Parent, dir, || self.fs.parent(cred, dir))
    }

    fn directories_of(&self, node: &Handle) -> Result<Vec<Handle>> {
        self.hook.around(Verb::DirectoriesOf, node, || self.fs.directories_of(node))
    }

    fn readlink(&self, cred: &Cred<Disk>, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        self.hook.around(Verb::Readlink, node, || self.fs.readlink(cred, node))
    }

    fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        self.hook.around(Verb::Read, node, || self.fs.read(cred, node, offset, count, into))
    }

    fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        let data = data.get(..self.hook.write_bytes(data.len())).unwrap_or(data);
        self.hook.around(Verb::Write, node, || self.fs.write(cred, node, offset, data))
    }

    fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        let data = data.get(..self.hook.write_bytes(data.len())).unwrap_or(data);
        self.hook.around(Verb::Write, node, || self.fs.write_opened(cred, node, offset, data))
    }

    fn write_stable(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<(Written<Disk>, Stability)> {
        let data = data.get(..self.hook.write_bytes(data.len())).unwrap_or(data);
        self.hook.around(Verb::Write, node, || self.fs.write_stable(cred, node, offset, data))
    }

    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        self.hook.around(Verb::Commit, node, || self.fs.commit(node))
    }

    fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        self.hook.around(Verb::Create, dir, || self.fs.create(cred, dir, name, how))
    }

    fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.hook.around(Verb::Mkdir, dir, || self.fs.mkdir(cred, dir, name, set))
    }

    fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.hook.around(Verb::Symlink, dir, || self.fs.symlink(cred, dir, name, target, set))
    }

    fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.hook.around(Verb::Mknod, dir, || self.fs.mknod(cred, dir, name, special, set))
    }

    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.hook.around(Verb::Remove, dir, || self.fs.remove(cred, dir, name))
    }

    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.hook.around(Verb::Rmdir, dir, || self.fs.rmdir(cred, dir, name))
    }

    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        self.hook.around(Verb::Rename, source.0, || self.fs.rename(cred, source, target))
    }

    fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        self.hook.around(Verb::Link, node, || self.fs.link(cred, node, dir, name))
    }

    fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<Attr<Disk>> {
        let work = || self.fs.readdir(cred, dir, cookie, wanted, visit);
        self.hook.around(Verb::Readdir, dir, work)
    }

    fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        self.hook.around(Verb::Getacl, node, || self.fs.getacl(node, kind))
    }

    fn setacl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        self.hook.around(Verb::Setacl, node, || self.fs.setacl(cred, node, kind, acl))
    }

    fn getxattr(&self, cred: &Cred<Disk>, node: &Handle, name: Name<'_>) -> Result<Vec<u8>> {
        self.hook.around(Verb::Getxattr, node, || self.fs.getxattr(cred, node, name))
    }

    fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        let work = || self.fs.setxattr(cred, node, name, value, mode);
        self.hook.around(Verb::Setxattr, node, work)
    }

    fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        self.hook.around(Verb::Listxattr, node, || self.fs.listxattr(cred, node))
    }

    fn seek(&self, cred: &Cred<Disk>, node: &Handle, offset: u64, what: Seek) -> Result<u64> {
        self.hook.around(Verb::Seek, node, || self.fs.seek(cred, node, offset, what))
    }

    fn allocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        let work = || self.fs.allocate(cred, node, offset, length);
        self.hook.around(Verb::Allocate, node, work)
    }

    fn deallocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        let work = || self.fs.deallocate(cred, node, offset, length);
        self.hook.around(Verb::Deallocate, node, work)
    }

    /// The hook is not asked, because these locks are shared by all clients and not set for one
    /// caller.
    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        self.hook.local_locks().or_else(|| self.fs.local_locks())
    }

    fn open_files(&self) -> Option<&dyn OpenFiles> {
        self.fs.open_files().map(|_| self as &dyn OpenFiles)
    }

    fn release_removed(&self) {
        self.fs.release_removed();
    }

    fn copy(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        self.hook.around(Verb::Copy, target.0, || self.fs.copy(cred, source, target, length))
    }

    fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        let work = || self.fs.clone_range(cred, source, target, length);
        self.hook.around(Verb::CloneRange, target.0, work)
    }
}

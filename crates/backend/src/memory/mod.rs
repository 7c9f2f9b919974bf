//! A whole file system in memory: for tests, for scratch space, and as the reference for the
//! behaviour of an [`Fs`].
//!
//! Locks: every object has its own lock, so that readers do not wait for each other and writers
//! wait only for their object. A verb on several objects finds them first, locks them in the order
//! of their numbers, and checks again whether they still belong together. Moves of directories also
//! take one common lock, so that the path up to the root does not change while it is checked. Locks
//! of the table and the account are taken last and held for a moment.

mod attributes;
mod content;
mod data;
mod directory;
mod extended;
mod limits;
mod listing;
mod names;
mod node;
mod rename;
mod space;
mod table;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use comity_vfs::{
    Access, Acl, AclKind, Attr, Change, Changed, Create, Cred, Disk, Entry, Fs, Gid, Handle,
    Listed, Listing, Made, Mode, Name, Node, Properties, Read, ReadInto, Result, Seek, SetAttr,
    Space, Special, Status, Target, Time, Uid, Written, XattrMode,
};

use self::directory::Directory;
use self::node::{Body, Node as Object};
use self::space::Account;
use self::table::Table;

/// Bounds and initial state of a [`Memory`].
#[derive(Debug, Clone, Copy)]
pub struct MemoryOptions {
    /// Most bytes of data, names, targets and extended attributes together; beyond them
    /// [`Status::NoSpc`].
    pub bytes_max: u64,
    /// Most objects; beyond them [`Status::NoSpc`].
    pub nodes_max: u64,
    /// Largest file in bytes; beyond it [`Status::FBig`].
    pub file_size_max: u64,
    /// Most links to one object; beyond them [`Status::MLink`].
    pub links_max: u32,
    /// Permission bits of the top directory.
    pub root_mode: Mode,
    /// Owner of the top directory.
    pub root_uid: Uid<Disk>,
    /// Group of the top directory.
    pub root_gid: Gid<Disk>,
    /// The source of the time.
    pub clock: fn() -> Time,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            bytes_max: limits::BYTES_MAX,
            nodes_max: limits::NODES_MAX,
            file_size_max: limits::FILE_SIZE_MAX,
            links_max: limits::LINKS_MAX,
            root_mode: Mode::new(0o755),
            root_uid: Uid::new(0),
            root_gid: Gid::new(0),
            clock: system_time,
        }
    }
}

impl MemoryOptions {
    /// Returns the default options, with a top directory that belongs to the user and group of this
    /// process, like a new folder.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            root_uid: Uid::new(rustix::process::geteuid().as_raw()),
            root_gid: Gid::new(rustix::process::getegid().as_raw()),
            ..Self::default()
        }
    }
}

/// A file system in memory. Its objects exist as long as it does; a handle of another instance, or
/// of a removed object, is [`Status::Stale`].
#[derive(Debug)]
pub struct Memory {
    options: MemoryOptions,
    root: Handle,
    table: Table,
    account: Arc<Account>,
    /// Locked while a directory moves to another one, or is replaced by an object of another one.
    moving: Mutex<()>,
}

impl Memory {
    /// Makes an empty file system.
    ///
    /// # Errors
    /// [`Status::NoSpc`] if the limits have no room for the root directory.
    pub fn new(options: MemoryOptions) -> Result<Self> {
        let table = Table::new();
        let account = Account::new(options.bytes_max, options.nodes_max);
        let fileid = table.fileid_next();
        let root = table.handle(fileid)?;
        let memory = Self { options, root, table, account, moving: Mutex::new(()) };
        let MemoryOptions { root_mode, root_uid, root_gid, .. } = options;
        let body = Body::Directory(Directory::new(fileid));
        let state = memory.state(fileid, body, root_mode, (root_uid, root_gid))?;
        memory.table.insert(Object::new(fileid, root, state));
        Ok(memory)
    }

    fn now(&self) -> Time {
        (self.options.clock)()
    }
}

impl Fs for Memory {
    fn root(&self) -> Handle {
        self.root
    }

    fn volume(&self, _node: &Handle) -> u64 {
        self.table.tag()
    }

    fn properties(&self, node: &Handle) -> Result<Properties> {
        self.table.find(node)?;
        Ok(Properties {
            file_size_max: self.options.file_size_max,
            name_bytes_max: comity_vfs::limits::NAME_BYTES_MAX as u32,
            links_max: self.options.links_max,
            time_delta: Time { seconds: 0, nanoseconds: 1 },
            hard_links: true,
            symbolic_links: true,
            chown_restricted: true,
            case_insensitive: false,
            case_preserving: true,
            clone_bytes: limits::PAGE_BYTES as u32,
            maker: None,
        })
    }

    fn statfs(&self, _cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        self.table.find(node)?;
        Ok(self.account.space())
    }

    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        attributes::getattr(self, node)
    }

    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        attributes::setattr(self, cred, node, set, guard)
    }

    fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        attributes::access(self, cred, node, wanted)
    }

    fn lookup(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>> {
        names::lookup(self, cred, dir, name)
    }

    fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        names::parent(self, cred, dir)
    }

    fn readlink(&self, _cred: &Cred<Disk>, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        data::readlink(self, node)
    }

    fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        data::read(self, cred, node, (offset, count), into)
    }

    fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        data::write(self, (cred, false), node, offset, data)
    }

    fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        data::write(self, (cred, true), node, offset, data).map(|written| written.value)
    }

    /// Nothing outlives the process, so there is nothing to do.
    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        match attributes::getattr(self, node) {
            Err(Status::Stale) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        names::create(self, cred, dir, name, how)
    }

    fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        names::mkdir(self, cred, dir, name, set)
    }

    fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        names::symlink(self, cred, (dir, name), target, set)
    }

    fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        names::mknod(self, cred, (dir, name), special, set)
    }

    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        names::remove(self, cred, dir, name, false)
    }

    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        names::remove(self, cred, dir, name, true)
    }

    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        rename::rename(self, cred, source, target)
    }

    fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        names::link(self, cred, node, dir, name)
    }

    fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<Attr<Disk>> {
        listing::readdir(self, cred, (dir, cookie), wanted, visit)
    }

    fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        extended::getacl(self, node, kind)
    }

    fn setacl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        extended::setacl(self, cred, node, kind, acl)
    }

    fn getxattr(&self, cred: &Cred<Disk>, node: &Handle, name: Name<'_>) -> Result<Vec<u8>> {
        extended::getxattr(self, cred, node, name)
    }

    fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        extended::setxattr(self, cred, (node, name), value, mode)
    }

    fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        extended::listxattr(self, cred, node)
    }

    fn seek(&self, cred: &Cred<Disk>, node: &Handle, offset: u64, what: Seek) -> Result<u64> {
        data::seek(self, cred, node, offset, what)
    }

    fn allocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        data::allocate(self, cred, node, offset, length)
    }

    fn deallocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        data::deallocate(self, cred, node, offset, length)
    }

    fn copy(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        data::copy(self, cred, source, target, length)
    }

    fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        data::clone_range(self, cred, source, target, length)
    }
}

/// Returns the time of the system's clock.
fn system_time() -> Time {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => Time { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() },
        Err(_) => Time::default(),
    }
}

#[cfg(test)]
mod tests;

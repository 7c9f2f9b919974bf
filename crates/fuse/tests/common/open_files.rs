//! Any `Fs` with opens and locks, as a client of a server has them.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use comity_vfs::{
    Access, Acl, AclKind, Attr, Change, Changed, Create, Cred, DelegationKind, DelegationNumber,
    Disk, Entry, Fs, Handle, HeldLock, Interrupt, Listed, Listing, LocalLocks, LockOutcome,
    LockOwner, LockRequest, Made, Name, Node, OpenAccess, OpenEvent, OpenFiles, OpenId, OpenedFile,
    Properties, RangeLock, Read, ReadInto, Result, Seek, SetAttr, Space, Special, Status, Target,
    Time, Written, XattrMode,
};

/// An `Fs` with opens, locks and events in memory.
pub struct WithOpens {
    fs: Arc<dyn Fs>,
    opens: Mutex<HashMap<OpenId, Handle>>,
    next: AtomicU64,
    locks: Mutex<Vec<(Handle, LockRequest)>>,
    /// Events to be polled.
    pub events: Mutex<VecDeque<OpenEvent>>,
    /// Files that are delegated.
    pub delegated: Mutex<Vec<Handle>>,
    /// Calls of `commit`, of `return_delegation` and of `lock` that unlock, in their order.
    pub calls: Mutex<Vec<&'static str>>,
    /// The failure of the next `commit`.
    pub commit_failure: Mutex<Option<Status>>,
}

impl WithOpens {
    pub fn new(fs: Arc<dyn Fs>) -> Arc<Self> {
        Arc::new(Self {
            fs,
            opens: Mutex::default(),
            next: AtomicU64::new(1),
            locks: Mutex::default(),
            events: Mutex::default(),
            delegated: Mutex::default(),
            calls: Mutex::default(),
            commit_failure: Mutex::default(),
        })
    }

    /// The number of opens that are not closed.
    pub fn open_count(&self) -> usize {
        self.opens.lock().unwrap().len()
    }

    fn add(&self, node: Node<Disk>) -> OpenedFile {
        let open = OpenId(self.next.fetch_add(1, Ordering::Relaxed));
        self.opens.lock().unwrap().insert(open, node.handle);
        let Node { handle, attr } = node;
        OpenedFile { open, handle, attr: Some(attr), delegation: self.delegation(&handle) }
    }

    fn node_of(&self, open: OpenId) -> Result<Handle> {
        self.opens.lock().unwrap().get(&open).copied().ok_or(Status::BadHandle)
    }

    fn judge(&self, cred: &Cred<Disk>, node: &Handle, access: OpenAccess) -> Result<Attr<Disk>> {
        let wanted = match access {
            OpenAccess::Read => Access::READ,
            OpenAccess::Write => Access::MODIFY,
            OpenAccess::Both => Access::READ | Access::MODIFY,
        };
        let (granted, attr) = self.fs.access(cred, node, wanted)?;
        if granted == wanted { Ok(attr) } else { Err(Status::Acces) }
    }

    fn holder(&self, node: &Handle, wanted: &LockRequest) -> Option<LockRequest> {
        let locks = self.locks.lock().unwrap();
        let stands = |(held_node, held): &&(Handle, LockRequest)| {
            held_node == node
                && held.owner != wanted.owner
                && held.bytes.0 <= wanted.bytes.1
                && wanted.bytes.0 <= held.bytes.1
                && (held.lock == RangeLock::Exclusive || wanted.lock == RangeLock::Exclusive)
        };
        locks.iter().find(stands).map(|(_, held)| *held)
    }

    /// Unlocks only whole locks, because the tests need nothing else.
    fn unlock(&self, node: &Handle, owner: LockOwner, bytes: (u64, u64)) {
        let within = |held: &LockRequest| bytes.0 <= held.bytes.0 && held.bytes.1 <= bytes.1;
        self.locks
            .lock()
            .unwrap()
            .retain(|(held_node, held)| held_node != node || held.owner != owner || !within(held));
    }
}

impl OpenFiles for WithOpens {
    fn open(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        _: Option<(&Handle, Name<'_>)>,
        access: OpenAccess,
    ) -> Result<OpenedFile> {
        let attr = self.judge(cred, node, access)?;
        Ok(self.add(Node { handle: *node, attr }))
    }

    fn open_name(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
        access: OpenAccess,
        create: Option<&Create<Disk>>,
    ) -> Result<Changed<OpenedFile, Disk>> {
        let is_unchecked = matches!(create, Some(Create::Unchecked(_)) | None);
        match self.fs.lookup(cred, dir, name) {
            Ok(found) if is_unchecked => {
                let attr = self.judge(cred, &found.node.handle, access)?;
                let value = self.add(Node { attr, ..found.node });
                return Ok(Changed {
                    value,
                    change: Change { before: found.dir, after: found.dir },
                });
            }
            Ok(_) => return Err(Status::Exist),
            Err(Status::NoEnt) => {}
            Err(status) => return Err(status),
        }
        let made = self.fs.create(cred, dir, name, create.ok_or(Status::NoEnt)?)?;
        Ok(Changed { value: self.add(made.value), change: made.change })
    }

    fn close(&self, open: OpenId) -> Result<()> {
        self.locks.lock().unwrap().retain(|(_, held)| held.open != open);
        self.opens.lock().unwrap().remove(&open).map(|_| ()).ok_or(Status::BadHandle)
    }

    fn keeps_removed(&self) -> bool {
        true
    }

    fn delegation(&self, node: &Handle) -> Option<DelegationKind> {
        self.delegated.lock().unwrap().contains(node).then_some(DelegationKind::Read)
    }

    fn file_grant(&self, node: &Handle) -> Option<DelegationNumber> {
        self.delegation(node).map(|_| DelegationNumber(0))
    }

    fn return_delegation(&self, node: &Handle) -> Result<()> {
        self.delegated.lock().unwrap().retain(|held| held != node);
        self.calls.lock().unwrap().push("return_delegation");
        Ok(())
    }

    fn note_unwritten(&self, _: &Handle, _: Option<u64>) {}

    fn lock(&self, wanted: &LockRequest) -> Result<LockOutcome> {
        let node = self.node_of(wanted.open)?;
        if wanted.lock == RangeLock::Free {
            self.calls.lock().unwrap().push("unlock");
            self.unlock(&node, wanted.owner, wanted.bytes);
            return Ok(LockOutcome::Done);
        }
        while self.holder(&node, wanted).is_some() {
            match wanted.waits {
                false => return Ok(LockOutcome::Denied),
                true if Interrupt::is_raised() => return Err(Status::Interrupted),
                true => thread::park_timeout(Duration::from_millis(5)),
            }
        }
        self.unlock(&node, wanted.owner, wanted.bytes);
        self.locks.lock().unwrap().push((node, *wanted));
        Ok(LockOutcome::Done)
    }

    fn find_lock(&self, wanted: &LockRequest) -> Result<Option<HeldLock>> {
        let found = self.holder(&self.node_of(wanted.open)?, wanted);
        let shown = |held: LockRequest| HeldLock {
            bytes: held.bytes,
            is_exclusive: held.lock == RangeLock::Exclusive,
        };
        Ok(found.map(shown))
    }

    fn poll_event(&self, patience: Duration) -> Option<OpenEvent> {
        let event = self.events.lock().unwrap().pop_front();
        if event.is_none() {
            thread::sleep(patience.min(Duration::from_millis(5)));
        }
        event
    }
}

impl Fs for WithOpens {
    fn root(&self) -> Handle {
        self.fs.root()
    }

    fn volume(&self, node: &Handle) -> u64 {
        self.fs.volume(node)
    }

    fn properties(&self, node: &Handle) -> Result<Properties> {
        self.fs.properties(node)
    }

    fn owns(&self, cred: &Cred<Disk>, node: &Handle) -> Result<bool> {
        self.fs.owns(cred, node)
    }

    fn statfs(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        self.fs.statfs(cred, node)
    }

    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        self.fs.getattr(node)
    }

    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        self.fs.setattr(cred, node, set, guard)
    }

    fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        self.fs.access(cred, node, wanted)
    }

    fn lookup(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>> {
        self.fs.lookup(cred, dir, name)
    }

    fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        self.fs.parent(cred, dir)
    }

    fn readlink(&self, cred: &Cred<Disk>, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        self.fs.readlink(cred, node)
    }

    fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        self.fs.read(cred, node, offset, count, into)
    }

    fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        self.fs.write(cred, node, offset, data)
    }

    fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        self.fs.write_opened(cred, node, offset, data)
    }

    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        self.calls.lock().unwrap().push("commit");
        let failure = self.commit_failure.lock().unwrap().take();
        failure.map_or_else(|| self.fs.commit(node), Err)
    }

    fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        self.fs.create(cred, dir, name, how)
    }

    fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.fs.mkdir(cred, dir, name, set)
    }

    fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.fs.symlink(cred, dir, name, target, set)
    }

    fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.fs.mknod(cred, dir, name, special, set)
    }

    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.fs.remove(cred, dir, name)
    }

    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.fs.rmdir(cred, dir, name)
    }

    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        self.fs.rename(cred, source, target)
    }

    fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        self.fs.link(cred, node, dir, name)
    }

    fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<Attr<Disk>> {
        self.fs.readdir(cred, dir, cookie, wanted, visit)
    }

    fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        self.fs.getacl(node, kind)
    }

    fn setacl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        self.fs.setacl(cred, node, kind, acl)
    }

    fn getxattr(&self, cred: &Cred<Disk>, node: &Handle, name: Name<'_>) -> Result<Vec<u8>> {
        self.fs.getxattr(cred, node, name)
    }

    fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        self.fs.setxattr(cred, node, name, value, mode)
    }

    fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        self.fs.listxattr(cred, node)
    }

    fn seek(&self, cred: &Cred<Disk>, node: &Handle, offset: u64, what: Seek) -> Result<u64> {
        self.fs.seek(cred, node, offset, what)
    }

    fn allocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        self.fs.allocate(cred, node, offset, length)
    }

    fn deallocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        self.fs.deallocate(cred, node, offset, length)
    }

    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        self.fs.local_locks()
    }

    fn open_files(&self) -> Option<&dyn OpenFiles> {
        Some(self)
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
        self.fs.copy(cred, source, target, length)
    }

    fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        self.fs.clone_range(cred, source, target, length)
    }
}

//! A file system below a cache: it counts calls, is also used by other clients, and may delegate.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comity_backend::Memory;
use comity_vfs::layers::{Faults, Layer, Metrics, Verb, When};
use comity_vfs::{
    Access, Acl, AclKind, Attr, Change, Changed, Create, Cred, DelegationKind, DelegationNumber,
    DirectoryNotice, Disk, Entry, Fs, Handle, HeldLock, Listed, Listing, LocalLocks, LockOutcome,
    LockRequest, Made, Name, Node, NoticedAttributes, NoticedChange, OpenAccess, OpenEvent,
    OpenFiles, OpenId, OpenedFile, Properties, Read, ReadInto, Result, Seek, SetAttr, Space,
    Special, Stability, Status, Target, Time, Written, XattrMode,
};

/// Called before a write or a commit.
pub(in super::super) type Hook = Box<dyn FnMut(Verb) -> Result<()> + Send>;

/// The file system as the cache sees it.
pub(in super::super) struct Below {
    faults: Arc<Faults>,
    memory: Arc<Memory>,
    fs: Layer<Arc<Metrics>>,
    metrics: Arc<Metrics>,
    /// True if opened files are delegated.
    pub(in super::super) delegates: AtomicBool,
    /// True if replies do not contain attributes from before and after a change.
    pub(in super::super) silent: AtomicBool,
    /// Locked by a test to delay replies with attributes.
    pub(in super::super) answers: Mutex<()>,
    /// Number of calls for attributes that were executed; their replies may still be delayed.
    pub(in super::super) answered: AtomicU64,
    /// The kind of the delegations of files.
    pub(in super::super) kind: Mutex<DelegationKind>,
    delegated: Mutex<HashMap<Handle, DelegationNumber>>,
    /// True if directories are delegated on request.
    pub(in super::super) grants: AtomicBool,
    granted: Mutex<HashMap<Handle, DelegationNumber>>,
    /// Most bytes that a write accepts, if it is to be stable. Without a limit no write is stable.
    pub(in super::super) stable_bytes_max: Mutex<Option<usize>>,
    /// Called before each write and each commit; an error is the answer.
    pub(in super::super) before: Mutex<Option<Hook>>,
    /// Number of writes that were stable.
    pub(in super::super) stable_writes: AtomicU64,
    /// True if names that differ in the case of a letter are one name.
    pub(in super::super) ignores_case: AtomicBool,
    /// Number of requests for delegations of directories.
    pub(in super::super) asked_for: AtomicU64,
    events: Mutex<Vec<OpenEvent>>,
    notices: Mutex<VecDeque<DirectoryNotice>>,
    opens: AtomicU64,
    /// The sizes that the cache reported for files with unsent data.
    pub(in super::super) unwritten: Mutex<Vec<Option<u64>>>,
    /// Delegations that were returned.
    pub(in super::super) returned: Mutex<Vec<Handle>>,
}

impl Below {
    pub(in super::super) fn new(memory: Arc<Memory>) -> Arc<Self> {
        let metrics = Arc::new(Metrics::default());
        let faults = Verb::ALL
            .into_iter()
            .fold(Faults::new(1), |faults, verb| faults.fail(verb, Status::Io, When::Always));
        let faults = Arc::new(faults);
        faults.set_active(false);
        let faulty = Layer::new(Arc::clone(&memory) as Arc<dyn Fs>, Arc::clone(&faults));
        let faulty: Arc<dyn Fs> = Arc::new(faulty);
        Arc::new(Self {
            faults,
            memory,
            fs: Layer::new(faulty, Arc::clone(&metrics)),
            metrics,
            delegates: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            answers: Mutex::default(),
            answered: AtomicU64::new(0),
            kind: Mutex::new(DelegationKind::Write),
            delegated: Mutex::default(),
            grants: AtomicBool::new(false),
            granted: Mutex::default(),
            stable_bytes_max: Mutex::default(),
            before: Mutex::default(),
            stable_writes: AtomicU64::new(0),
            ignores_case: AtomicBool::new(false),
            asked_for: AtomicU64::new(0),
            events: Mutex::default(),
            notices: Mutex::default(),
            opens: AtomicU64::new(0),
            unwritten: Mutex::default(),
            returned: Mutex::default(),
        })
    }

    /// Makes all calls fail, as if the server were unreachable.
    pub(in super::super) fn cut(&self) {
        self.faults.set_active(true);
    }

    /// Makes calls work again.
    pub(in super::super) fn mend(&self) {
        self.faults.set_active(false);
    }

    /// The same file system as other clients see it.
    pub(in super::super) fn others(&self) -> &Memory {
        &self.memory
    }

    pub(in super::super) fn calls(&self, verb: Verb) -> u64 {
        self.metrics.sample(verb).calls
    }

    /// Revokes a delegation without a recall.
    pub(in super::super) fn revoke(&self, node: &Handle) {
        self.end(node);
        self.events.lock().unwrap().push(OpenEvent::DelegationLost { node: *node });
    }

    /// Ends a delegation; the event that says so is still to come.
    pub(in super::super) fn end(&self, node: &Handle) {
        self.delegated.lock().unwrap().remove(node);
    }

    /// Ends the delegation of a directory, and reports it to the client by an event.
    pub(in super::super) fn end_grant(&self, dir: &Handle, event: OpenEvent) {
        self.granted.lock().unwrap().remove(dir);
        self.events.lock().unwrap().push(event);
    }

    /// Notifies the client of a change of a directory by another client, under the delegation of
    /// this number.
    pub(in super::super) fn notify(&self, dir: &Handle, grant: u64, change: NoticedChange) {
        self.notify_late((dir, grant), change, self.memory.getattr(dir).unwrap());
    }

    /// The same, with the attributes that the directory had after that change.
    pub(in super::super) fn notify_late(
        &self,
        (dir, grant): (&Handle, u64),
        change: NoticedChange,
        attr: Attr<Disk>,
    ) {
        let Attr { change: number, size, links, used, atime, ctime, mtime, .. } = attr;
        let after = NoticedAttributes { change: number, size, links, used, atime, ctime, mtime };
        let (dir, grant, after) = (*dir, DelegationNumber(grant), Some(after));
        let notice = DirectoryNotice { dir, grant, change, after };
        self.notices.lock().unwrap().push_back(notice);
    }

    /// Calls `hook` before each write and each commit from now on.
    pub(in super::super) fn before(&self, hook: impl FnMut(Verb) -> Result<()> + Send + 'static) {
        *self.before.lock().unwrap() = Some(Box::new(hook));
    }

    fn prepare(&self, verb: Verb) -> Result<()> {
        self.before.lock().unwrap().as_mut().map_or(Ok(()), |hook| hook(verb))
    }

    fn pass_on<T>(&self, answer: T) -> T {
        self.answered.fetch_add(1, Ordering::SeqCst);
        drop(self.answers.lock().unwrap());
        answer
    }

    fn told(&self, change: Change<Disk>) -> Change<Disk> {
        if self.silent.load(Ordering::SeqCst) { Change::UNKNOWN } else { change }
    }

    fn opened(&self, node: Node<Disk>) -> OpenedFile {
        let open = OpenId(self.opens.fetch_add(1, Ordering::SeqCst));
        self.delegated.lock().unwrap().entry(node.handle).or_insert(DelegationNumber(open.0));
        let Node { handle, attr } = node;
        OpenedFile { open, handle, attr: Some(attr), delegation: self.delegation(&handle) }
    }
}

impl OpenFiles for Below {
    fn open(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        place: Option<(&Handle, Name<'_>)>,
        _: OpenAccess,
    ) -> Result<OpenedFile> {
        let attr = self.memory.getattr(node)?;
        let named = place.map(|(dir, name)| self.memory.lookup(cred, dir, name));
        if named.is_some_and(|named| named.map(|entry| entry.node.handle) != Ok(*node)) {
            return Err(Status::Stale);
        }
        Ok(self.opened(Node { handle: *node, attr }))
    }

    fn open_name(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
        _: OpenAccess,
        create: Option<&Create<Disk>>,
    ) -> Result<Changed<OpenedFile, Disk>> {
        let made = self.memory.create(cred, dir, name, create.ok_or(Status::NotSupp)?)?;
        Ok(Changed { value: self.opened(made.value), change: made.change })
    }

    fn close(&self, _: OpenId) -> Result<()> {
        Ok(())
    }

    fn delegation(&self, node: &Handle) -> Option<DelegationKind> {
        self.file_grant(node).map(|_| *self.kind.lock().unwrap())
    }

    fn file_grant(&self, node: &Handle) -> Option<DelegationNumber> {
        self.delegated.lock().unwrap().get(node).copied()
    }

    fn return_delegation(&self, node: &Handle) -> Result<()> {
        self.delegated.lock().unwrap().remove(node);
        self.returned.lock().unwrap().push(*node);
        Ok(())
    }

    fn directory_grant(&self, dir: &Handle) -> Option<DelegationNumber> {
        self.granted.lock().unwrap().get(dir).copied()
    }

    fn delegate_directory(&self, dir: &Handle) -> Result<(Attr<Disk>, Option<DelegationNumber>)> {
        let number = self.asked_for.fetch_add(1, Ordering::SeqCst);
        let grant = self.grants.load(Ordering::SeqCst).then_some(DelegationNumber(number));
        if let Some(grant) = grant {
            self.granted.lock().unwrap().insert(*dir, grant);
        }
        let attr = self.fs.getattr(dir);
        self.pass_on(attr).map(|attr| (attr, grant))
    }

    fn note_unwritten(&self, _: &Handle, size: Option<u64>) {
        self.unwritten.lock().unwrap().push(size);
    }

    fn lock(&self, _: &LockRequest) -> Result<LockOutcome> {
        Ok(LockOutcome::Done)
    }

    fn find_lock(&self, _: &LockRequest) -> Result<Option<HeldLock>> {
        Err(Status::NotSupp)
    }

    fn poll_notice(&self) -> Option<DirectoryNotice> {
        self.notices.lock().unwrap().pop_front()
    }

    fn poll_event(&self, _: Duration) -> Option<OpenEvent> {
        self.events.lock().unwrap().pop()
    }
}

impl Fs for Below {
    fn root(&self) -> Handle {
        self.fs.root()
    }

    fn volume(&self, node: &Handle) -> u64 {
        self.fs.volume(node)
    }

    fn properties(&self, node: &Handle) -> Result<Properties> {
        let case_insensitive = self.ignores_case.load(Ordering::SeqCst);
        Ok(Properties { case_insensitive, ..self.fs.properties(node)? })
    }

    fn owns(&self, cred: &Cred<Disk>, node: &Handle) -> Result<bool> {
        self.fs.owns(cred, node)
    }

    fn statfs(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        self.fs.statfs(cred, node)
    }

    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        let attr = self.fs.getattr(node);
        self.pass_on(attr)
    }

    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        self.fs.setattr(cred, node, set, guard).map(|change| self.told(change))
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
        let found = self.fs.lookup(cred, dir, name);
        self.pass_on(found)
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
        let written =
            self.prepare(Verb::Write).and_then(|()| self.fs.write(cred, node, offset, data));
        self.pass_on(written)
    }

    fn write_stable(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<(Written<Disk>, Stability)> {
        let Some(most) = *self.stable_bytes_max.lock().unwrap() else {
            return Ok((self.write(cred, node, offset, data)?, Stability::Unstable));
        };
        self.stable_writes.fetch_add(1, Ordering::SeqCst);
        let data = data.get(..most).unwrap_or(data);
        Ok((self.write(cred, node, offset, data)?, Stability::FileSync))
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
        self.prepare(Verb::Commit)?;
        self.fs.commit(node)
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
        let removed = self.fs.remove(cred, dir, name);
        self.pass_on(removed)
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
        self.fs.deallocate(cred, node, offset, length).map(|change| self.told(change))
    }

    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        self.fs.local_locks()
    }

    fn open_files(&self) -> Option<&dyn OpenFiles> {
        let delegates = [&self.delegates, &self.grants];
        delegates.iter().any(|it| it.load(Ordering::SeqCst)).then_some(self)
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
        let copied = self.fs.copy(cred, source, target, length)?;
        Ok(Changed { change: self.told(copied.change), ..copied })
    }

    fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        self.fs.clone_range(cred, source, target, length).map(|change| self.told(change))
    }
}

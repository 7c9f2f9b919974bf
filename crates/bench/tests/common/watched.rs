//! A directory as a target that logs each operation and can return wrong results.

use std::collections::BTreeMap;
use std::io::Result as IoResult;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use comity_bench::suite::{
    Access, Entry, FileId, Files, LockKind, Metadata, Range, Target, TargetKind, TargetRecord, Wait,
};
use comity_bench::targets::DirectoryTarget;
use rustix::io::Errno;

/// The way in which a target misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    /// The target never fails.
    None,
    /// From the n-th read on, one byte is wrong.
    WrongData(u64),
    /// Reads return fewer bytes from the n-th read on.
    ShortReads(u64),
    /// Writes fail for lack of space from the n-th write on.
    Full(u64),
    /// Written data is lost when the worker ends, synced or not.
    Forgets,
    /// Files are not given to other users.
    OwnersStay,
    /// The target is lazily unmounted at the n-th operation.
    Unmounted(u64),
    /// The user interrupts the run at the n-th operation.
    Interrupted(u64),
}

/// The target; it logs every operation.
pub(crate) struct Watched {
    inner: DirectoryTarget,
    lie: Lie,
    /// True if programs of this machine may be run in the directory.
    is_local: bool,
    shared: Arc<Shared>,
}

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) log: Mutex<Vec<String>>,
    operations: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    open: AtomicU64,
    /// The highest number of files that were open at a time.
    pub(crate) open_most: AtomicU64,
    /// Run once, at the operation that `Lie::Unmounted` or `Lie::Interrupted` names.
    pub(crate) event: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Shared {
    fn opened(&self) {
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.open_most.fetch_max(open, Ordering::Relaxed);
    }
}

impl Watched {
    pub(crate) fn new(directory: &Path, lie: Lie) -> Self {
        let inner = DirectoryTarget::open(directory).unwrap();
        Self { inner, lie, is_local: true, shared: Arc::default() }
    }

    /// The target, but programs cannot be run in it, so that workloads leave out the phase that
    /// compiles.
    pub(crate) fn without_programs(self) -> Self {
        Self { is_local: false, ..self }
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

impl Target for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn kind(&self) -> TargetKind {
        self.inner.kind()
    }

    fn record(&self) -> TargetRecord {
        self.inner.record()
    }

    fn directory(&self) -> Option<&Path> {
        self.inner.directory().filter(|_| self.is_local)
    }

    fn check(&self) -> anyhow::Result<()> {
        self.inner.check()
    }

    fn files(&self) -> anyhow::Result<Box<dyn Files>> {
        Ok(Box::new(WatchedFiles {
            inner: self.inner.files()?,
            lie: self.lie,
            shared: Arc::clone(&self.shared),
            written: BTreeMap::new(),
        }))
    }
}

struct WatchedFiles {
    inner: Box<dyn Files>,
    lie: Lie,
    shared: Arc<Shared>,
    /// The paths of files that were opened for writing, whose data `Lie::Forgets` loses.
    written: BTreeMap<FileId, String>,
}

impl WatchedFiles {
    fn saw(&self, what: String) {
        let number = self.shared.operations.fetch_add(1, Ordering::Relaxed);
        if let Lie::Unmounted(at) | Lie::Interrupted(at) = self.lie
            && number >= at
            && let Some(event) = self.shared.event.lock().unwrap().take()
        {
            event();
        }
        self.shared.log.lock().unwrap().push(what);
    }
}

impl Files for WatchedFiles {
    fn make_directory(&mut self, path: &str) -> IoResult<()> {
        self.saw(format!("mkdir {path}"));
        self.inner.make_directory(path)
    }

    fn remove_directory(&mut self, path: &str) -> IoResult<()> {
        self.inner.remove_directory(path)
    }

    fn create(&mut self, path: &str) -> IoResult<FileId> {
        self.saw(format!("create {path}"));
        let file = self.inner.create(path)?;
        self.shared.opened();
        self.written.insert(file, path.to_owned());
        Ok(file)
    }

    fn open(&mut self, path: &str, access: Access) -> IoResult<FileId> {
        self.saw(format!("open {path}"));
        self.inner.open(path, access).inspect(|_| self.shared.opened())
    }

    fn close(&mut self, file: FileId) -> IoResult<()> {
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
        if self.lie == Lie::Forgets
            && let Some(path) = self.written.remove(&file)
        {
            let again = self.inner.create(&path)?;
            self.inner.close(again)?;
        }
        self.inner.close(file)
    }

    fn read(&mut self, file: FileId, offset: u64, buffer: &mut [u8]) -> IoResult<usize> {
        self.saw(format!("read {} at {offset}", buffer.len()));
        let count = self.inner.read(file, offset, buffer)?;
        let number = self.shared.reads.fetch_add(1, Ordering::Relaxed);
        match self.lie {
            Lie::WrongData(at) if number >= at => buffer[count / 2] ^= 0x10,
            Lie::ShortReads(at) if number >= at => return Ok(count / 2),
            _ => {}
        }
        Ok(count)
    }

    fn write(&mut self, file: FileId, offset: u64, data: &[u8]) -> IoResult<usize> {
        self.saw(format!("write {} at {offset}", data.len()));
        let number = self.shared.writes.fetch_add(1, Ordering::Relaxed);
        match self.lie {
            Lie::Full(at) if number >= at => Err(Errno::NOSPC.into()),
            _ => self.inner.write(file, offset, data),
        }
    }

    fn sync(&mut self, file: FileId) -> IoResult<()> {
        self.inner.sync(file)
    }

    fn attributes(&mut self, file: FileId) -> IoResult<Metadata> {
        self.saw("getattr".to_owned());
        self.inner.attributes(file)
    }

    fn lookup(&mut self, path: &str) -> IoResult<Metadata> {
        self.saw(format!("lookup {path}"));
        self.inner.lookup(path)
    }

    fn list(&mut self, path: &str, attributes: bool) -> IoResult<Vec<Entry>> {
        self.saw(format!("list {path}"));
        self.inner.list(path, attributes)
    }

    fn make_link(&mut self, path: &str, to: &str) -> IoResult<()> {
        self.saw(format!("symlink {path}"));
        self.inner.make_link(path, to)
    }

    fn read_link(&mut self, path: &str) -> IoResult<String> {
        self.saw(format!("readlink {path}"));
        self.inner.read_link(path)
    }

    fn remove(&mut self, path: &str) -> IoResult<()> {
        self.saw(format!("remove {path}"));
        self.inner.remove(path)
    }

    fn set_owner(&mut self, path: &str, user: u32, group: u32) -> IoResult<()> {
        match self.lie {
            Lie::OwnersStay => Err(Errno::PERM.into()),
            _ => self.inner.set_owner(path, user, group),
        }
    }

    fn lock(&mut self, file: FileId, kind: LockKind, range: Range, wait: Wait) -> IoResult<()> {
        self.inner.lock(file, kind, range, wait)
    }
}

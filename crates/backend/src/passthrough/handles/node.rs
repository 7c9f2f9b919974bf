use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Instant;

use comity_vfs::{FileType, Handle, Result, Status};
use rustix::fs::{Stat, fstat};

use super::descriptors::Share;
use super::kernel_delegation::KernelDelegation;
use crate::blocking::blocking;
use crate::errno::status;
use crate::passthrough::access::access_cache::AccessCache;
use crate::passthrough::data::barrier::Barrier;
use crate::passthrough::limits::{LARGE_BYTES, WRITER_TURN, WRITER_TURNS};
use crate::passthrough::mounts::mount::Mount;
use crate::sync_errors::SyncErrors;
use crate::sys;

/// An object in use: its descriptors, and cached facts about it while they are open.
///
/// A node in use is never evicted, so there is only one per object at a time.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) handle: Handle,
    pub(crate) mount: Arc<Mount>,
    pub(crate) kind: FileType,
    object: Arc<Object>,
    /// A descriptor for reading data or listing.
    reading: OnceLock<Arc<File>>,
    /// A descriptor for reading and writing data, while the file is written.
    writing: Mutex<Writer>,
    /// True if bytes are locked by the open file description for writing.
    locked: AtomicBool,
    /// True if the file must be marked before it is changed.
    pub(crate) unmarked: AtomicBool,
    /// True if the file uses much space, or may because it is open for writing.
    large: AtomicBool,
    /// A link's target, which never changes.
    pub(crate) target: OnceLock<Box<[u8]>>,
    pub(crate) verdicts: Mutex<AccessCache>,
    pub(crate) barrier: Barrier,
    /// Locked around a change of a directory or of attributes, and around the reads before and
    /// after it. Of a directory it has the kernel's delegation, which would make such a change
    /// wait.
    changing: Mutex<Option<Arc<KernelDelegation>>>,
    writes_begun: AtomicU64,
    writes_ended: AtomicU64,
    pub(crate) ledger: Arc<Ledger>,
    opened: AtomicUsize,
}

/// The counts that all nodes of a file system share, including evicted nodes that are still in use.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Open descriptors.
    pub(crate) descriptors: Share,
    /// Failed barriers.
    pub(crate) failures: SyncErrors,
}

/// The object of a node, open as `O_PATH`. Listings refer to objects without their nodes.
#[derive(Debug)]
pub(crate) struct Object {
    file: File,
    /// True if the object was used since the cache last checked.
    used: AtomicBool,
}

impl Object {
    /// Asks the kernel for the object's attributes.
    ///
    /// # Errors
    /// [`Status::Stale`] if the object has lost its last name.
    pub(crate) fn stat(&self) -> Result<Stat> {
        let stat = fstat(&self.file).map_err(status)?;
        if stat.st_nlink == 0 { Err(Status::Stale) } else { Ok(stat) }
    }

    /// Notes that the object is in use.
    pub(crate) fn touch(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether the object was used since the last call.
    pub(crate) fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }
}

/// The purpose of a data descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Write,
}

impl Node {
    /// Makes the node of the object that is open as `object` and has the type `kind`.
    pub(crate) fn new(
        handle: Handle,
        mount: Arc<Mount>,
        object: File,
        kind: FileType,
        ledger: &Arc<Ledger>,
    ) -> Self {
        ledger.descriptors.opened();
        Self {
            handle,
            mount,
            kind,
            object: Arc::new(Object { file: object, used: AtomicBool::new(false) }),
            reading: OnceLock::new(),
            writing: Mutex::default(),
            locked: AtomicBool::new(false),
            unmarked: AtomicBool::new(false),
            large: AtomicBool::new(false),
            target: OnceLock::new(),
            verdicts: Mutex::default(),
            barrier: Barrier::default(),
            changing: Mutex::default(),
            writes_begun: AtomicU64::new(0),
            writes_ended: AtomicU64::new(0),
            ledger: Arc::clone(ledger),
            opened: AtomicUsize::new(1),
        }
    }

    /// Returns the object.
    pub(crate) const fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Returns the object's descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.object.file.as_fd()
    }

    /// See [`Object::stat`].
    pub(crate) fn stat(&self) -> Result<Stat> {
        self.object.stat()
    }

    /// Returns the descriptor for `purpose`, if it is open.
    pub(crate) fn data(&self, purpose: Use) -> Option<Arc<File>> {
        if purpose == Use::Read
            && let Some(file) = self.reading.get()
        {
            return Some(Arc::clone(file));
        }
        self.writer().file.clone()
    }

    /// Keeps a descriptor for `purpose`; returns that of another thread instead, if that one was
    /// faster.
    pub(crate) fn keep_data(&self, purpose: Use, file: File) -> Arc<File> {
        let file = Arc::new(file);
        if purpose == Use::Read {
            let kept = self.reading.get_or_init(|| {
                self.count_opened();
                file
            });
            return Arc::clone(kept);
        }
        let mut writer = self.writer();
        self.large.store(true, Ordering::Relaxed);
        if writer.file.is_none() {
            self.count_opened();
            writer.count_opened();
        }
        Arc::clone(writer.file.get_or_insert(file))
    }

    /// Notes how much space the object uses.
    pub(crate) fn weigh(&self, stat: &Stat) {
        let bytes = (stat.st_blocks as u64).saturating_mul(512);
        let writer = self.writer();
        let large = bytes >= LARGE_BYTES || writer.file.is_some();
        self.large.store(large, Ordering::Relaxed);
    }

    /// Returns whether the object used much space when it was last checked, or was written since.
    pub(crate) fn is_large(&self) -> bool {
        self.large.load(Ordering::Relaxed)
    }

    /// Closes the descriptor for writing after all data are stable: while it is open, no program on
    /// this machine can execute the file (ETXTBSY). It stays open for a caller that writes and
    /// commits in quick succession, and while bytes are locked by it.
    pub(crate) fn end_writing(&self) {
        let mut writer = self.writer();
        let used = self.barrier.is_written() || self.locked.load(Ordering::Relaxed);
        if writer.opened <= WRITER_TURNS && !writer.only && !used {
            self.close(&mut writer);
        }
    }

    fn close(&self, writer: &mut Writer) {
        if writer.file.take().is_some() {
            self.opened.fetch_sub(1, Ordering::Relaxed);
            self.ledger.descriptors.closed(1);
        }
    }

    /// Closes the descriptor for writing, however quickly it was opened again. Returns `false` if
    /// it must stay open because of unstable data or locked bytes.
    pub(crate) fn stop_writing(&self) -> bool {
        let mut writer = self.writer();
        if self.barrier.is_written() || self.locked.load(Ordering::Relaxed) {
            return writer.file.is_none();
        }
        self.close(&mut writer);
        true
    }

    /// Makes all reads and writes use the open file description for writing until
    /// [`Node::use_both`]. Returns `false` if `file` is not that description any more, or bytes are
    /// locked by it while another one is open for reading.
    pub(crate) fn use_only(&self, file: &Arc<File>) -> bool {
        let mut writer = self.writer();
        let is_it = writer.file.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, file));
        let is_free = match self.reading.get() {
            Some(reading) if is_it && !self.locked.load(Ordering::Relaxed) => {
                sys::replace_descriptor(reading, file.as_fd()).is_ok()
            }
            reading => reading.is_none(),
        };
        writer.only = is_it && is_free;
        writer.only
    }

    /// Lets reads have a description of their own again; returns the descriptor for reading, if
    /// there is one, which still refers to the description for writing.
    pub(crate) fn use_both(&self) -> Option<&Arc<File>> {
        self.writer().only = false;
        self.reading.get()
    }

    /// Sets whether bytes are locked by the description for writing.
    pub(crate) fn set_locked(&self, locked: bool) {
        self.locked.store(locked, Ordering::Relaxed);
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_opened(&self) {
        self.ledger.descriptors.opened();
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// Excludes other changes of this object by this server until the guard is dropped. Changes may
    /// take long, such as truncating a huge file: a thread that waits for one passes its event loop
    /// to another thread.
    ///
    /// # Errors
    /// [`Status::Delay`] if the change would wait for the kernel's delegation.
    pub(crate) fn hold_patiently(&self) -> Result<Changing<'_>> {
        Changing::begin(self.delegation())
    }

    fn delegation(&self) -> DelegationGuard<'_> {
        let wait = || self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.unchanged().unwrap_or_else(|| blocking(wait))
    }

    /// Returns the delegation unless this server is changing the object.
    fn unchanged(&self) -> Option<DelegationGuard<'_>> {
        match self.changing.try_lock() {
            Ok(kept) => Some(kept),
            Err(TryLockError::Poisoned(kept)) => Some(kept.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Keeps the kernel's delegation of this directory.
    ///
    /// # Errors
    /// The kernel's error: it does not grant the delegation.
    pub(crate) fn delegate(&self, delegation: KernelDelegation) -> sys::Result<()> {
        let mut kept = self.delegation();
        delegation.take()?;
        *kept = Some(Arc::new(delegation));
        Ok(())
    }

    /// Releases the kernel's delegation of this directory.
    pub(crate) fn undelegate(&self) {
        if let Some(delegation) = self.delegation().take() {
            // If that fails, closing the directory releases it.
            let _ = delegation.release();
        }
    }

    /// Returns whether the kernel's delegation of this directory is unbroken. During a change by
    /// this server it is not known to be broken.
    pub(crate) fn is_delegated(&self) -> bool {
        let is_whole = |kept: DelegationGuard<'_>| kept.as_ref().is_some_and(|it| it.is_whole());
        self.unchanged().is_none_or(is_whole)
    }

    /// Notes the beginning of a write; [`Writing::is_alone`] returns afterwards whether another one
    /// overlapped it.
    pub(crate) fn begin_write(&self) -> Writing<'_> {
        let ended = self.writes_ended.load(Ordering::Acquire);
        let begun = self.writes_begun.fetch_add(1, Ordering::AcqRel);
        Writing { node: self, quiet: ended == begun, number: begun + 1 }
    }
}

/// A change of an object by this server: it excludes others. The kernel's delegation of a directory
/// is released meanwhile, because the change would wait for it.
#[derive(Debug)]
pub(crate) struct Changing<'a> {
    /// Empty only while the change ends.
    held: Option<DelegationGuard<'a>>,
}

type DelegationGuard<'a> = MutexGuard<'a, Option<Arc<KernelDelegation>>>;

impl<'a> Changing<'a> {
    fn begin(held: DelegationGuard<'a>) -> Result<Self> {
        let delegation = held.clone();
        let changing = Self { held: Some(held) };
        delegation.map_or(Ok(()), |delegation| delegation.release())?;
        Ok(changing)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        let Some(delegation) = held.clone() else { return };
        // A delegation that cannot be taken again is reported as broken.
        let _ = delegation.take();
        drop(held);
        // The kernel's signal was ignored if it came while the directory was locked.
        delegation.report_if_broken();
    }
}

/// A descriptor for writing, and the number of times in a row that it was opened again quickly.
#[derive(Debug, Default)]
struct Writer {
    file: Option<Arc<File>>,
    /// True if reads use this description, too, and no other is open.
    only: bool,
    opened: u32,
    at: Option<Instant>,
}

impl Writer {
    fn count_opened(&mut self) {
        let now = Instant::now();
        let quick = self.at.is_some_and(|at| now - at < WRITER_TURN);
        self.opened = if quick { self.opened + 1 } else { 1 };
        self.at = Some(now);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.ledger.descriptors.closed(*self.opened.get_mut());
    }
}

/// A running write to a node.
pub(crate) struct Writing<'a> {
    node: &'a Node,
    quiet: bool,
    number: u64,
}

impl Writing<'_> {
    /// Returns whether no other write of this server overlapped this one so far.
    pub(crate) fn is_alone(&self) -> bool {
        self.quiet && self.node.writes_begun.load(Ordering::Acquire) == self.number
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.node.writes_ended.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::AsServer;

    use super::super::descriptors::Descriptors;
    use super::*;
    use crate::LeaseWatch;
    use crate::blocking::watch;
    use crate::passthrough::access::thread_credentials::Identity;

    fn directory(folder: &tempfile::TempDir) -> Node {
        let mount = Arc::new(Mount::open(&AsServer::here().unwrap(), folder.path()).unwrap());
        let (handle, object) = (mount.root, File::open(folder.path()).unwrap());
        let descriptors = Descriptors::at_most(1).share();
        let ledger = Arc::new(Ledger { descriptors, failures: SyncErrors::default() });
        Node::new(handle, mount, object, FileType::Directory, &ledger)
    }

    #[test]
    fn a_panic_during_a_change_hides_no_broken_delegation() {
        let folder = tempfile::tempdir().unwrap();
        let node = directory(&folder);
        std::thread::scope(|scope| {
            let change = || {
                let _held = node.hold_patiently().unwrap();
                panic!("a change panics");
            };
            assert!(scope.spawn(change).join().is_err());
        });
        assert!(!node.is_delegated());
    }

    #[test]
    fn a_change_that_would_wait_for_the_server_itself_is_delayed() {
        let folder = tempfile::tempdir().unwrap();
        let node = directory(&folder);
        let path = rustix::fs::OFlags::PATH;
        let opened = rustix::fs::open(folder.path(), path, rustix::fs::Mode::empty()).unwrap();
        let (directory, watch) = (Arc::new(File::from(opened)), Arc::<LeaseWatch>::default());
        let identity = Identity::Server;
        let delegation = KernelDelegation { directory, thread: 0, watch, identity };
        let watch = Arc::clone(&delegation.watch);
        // The kernel neither grants nor releases delegations by such a descriptor.
        *node.changing.lock().unwrap() = Some(Arc::new(delegation));
        assert_eq!(node.hold_patiently().unwrap_err(), Status::Delay);
        assert_eq!(watch.take(|_| true).1, 1, "the directory is reported");
        node.undelegate();
        assert!(node.hold_patiently().is_ok());
    }

    #[test]
    fn a_wait_for_a_long_change_is_announced() {
        a_wait_is_announced(|node| drop(node.hold_patiently()));
    }

    #[test]
    fn a_release_that_waits_for_a_long_change_is_announced() {
        a_wait_is_announced(Node::undelegate);
    }

    fn a_wait_is_announced(wait: impl FnOnce(&Node) + Send) {
        watch::install();
        let folder = tempfile::tempdir().unwrap();
        let node = directory(&folder);
        let held = node.hold_patiently().unwrap();
        let said_so = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(&node));
            let thread = waiting.thread().id();
            let deadline = Instant::now() + std::time::Duration::from_secs(10);
            while watch::sleeps_of(thread) == 0 && Instant::now() < deadline {
                std::thread::yield_now();
            }
            drop(held);
            watch::sleeps_of(thread)
        });
        assert_eq!(said_so, 1);
    }
}

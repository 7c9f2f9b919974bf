//! Programs on the server that lock and open the same files as clients do.

use std::collections::VecDeque;

use comity_vfs::DirectoryHold;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::table::lock;
use crate::{ByteRange, DelegationKind, FileKey, LockType, Origin};

/// The result of an attempt to lock bytes against programs on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The bytes are locked, and `take` was called.
    Done,
    /// A program has locked some of the bytes; `take` was not called.
    Held,
    /// Too many files are locked at present, or too many for this origin; the caller should try
    /// again later.
    Later,
}

/// A lock that a client asks for.
#[derive(Debug, Clone, Copy)]
pub struct LocalLock {
    /// The bytes.
    pub range: ByteRange,
    /// Read or write.
    pub kind: LockType,
    /// The origin of the client.
    pub origin: Origin,
    /// True if the client had the lock before the server restarted.
    pub reclaim: bool,
}

/// Parts of a range, and the strongest lock that clients have on each.
pub type Parts = Vec<(ByteRange, Option<LockType>)>;

/// Locks and leases in the file system, on behalf of the engine. The engine knows only clients;
/// this makes the union of all clients' locks visible to programs on the server, as one owner.
pub trait Locals: Send + Sync {
    /// Locks bytes against programs. Then it calls `take`, which locks them in the engine and
    /// returns the number of locked ranges of the file if it succeeded. Finally it makes the locks
    /// in the file system equal to the union of the clients' locks. A file counts for the origin
    /// that was the first to lock it.
    fn take(
        &self,
        file: &FileKey,
        lock: &LocalLock,
        take: &mut dyn FnMut() -> Option<usize>,
    ) -> Taken;

    /// Calls `give`, which unlocks bytes in the engine and returns the number of locked ranges of
    /// the file if it did. Bytes that no client has locked any more are then unlocked in the file
    /// system.
    fn give(&self, file: &FileKey, range: ByteRange, give: &mut dyn FnMut() -> Option<usize>);

    /// Makes the kernel report when a program opens a file that the engine has just delegated.
    /// Returns `false` if a program has the file open, or its opens would not be reported: then the
    /// delegation must be taken back.
    fn delegate(&self, file: &FileKey, kind: DelegationKind) -> bool;

    /// Makes the kernel report changes by programs of a directory that the engine has just
    /// delegated. Returns `false` if they would not be reported: then the delegation must be taken
    /// back.
    fn delegate_directory(&self, directory: &FileKey, hold: DirectoryHold) -> bool;

    /// Unlocks in the file system what clients have released ([`crate::Engine::poll_unlocked`],
    /// [`crate::Engine::poll_undelegated`]).
    fn settle(&self);

    /// Returns whether no program has a lock that conflicts with this one.
    fn is_free(&self, file: &FileKey, lock: (ByteRange, LockType)) -> bool;
}

/// A queue of bytes or files that clients have released, to be unlocked in the file system.
pub(crate) struct ReleaseQueue<T> {
    queue: Mutex<VecDeque<T>>,
    waiting: AtomicUsize,
}

impl<T> Default for ReleaseQueue<T> {
    fn default() -> Self {
        Self { queue: Mutex::new(VecDeque::new()), waiting: AtomicUsize::new(0) }
    }
}

impl<T> ReleaseQueue<T> {
    pub(crate) fn push(&self, freed: T) {
        let mut queue = lock(&self.queue);
        queue.push_back(freed);
        self.waiting.store(queue.len(), Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut queue = lock(&self.queue);
        let freed = queue.pop_front();
        self.waiting.store(queue.len(), Ordering::Release);
        freed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }
}

//! Programs on the server that lock and open the same files as clients do.

use std::collections::VecDeque;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::table::lock;
use crate::{ByteRange, DelegationKind, FileKey, LockType};

/// The result of an attempt to take bytes of a file from programs on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// They have been taken, and what was to be done then was done.
    Done,
    /// A program holds some of them; nothing was done.
    Held,
    /// Not now: too many files are locked.
    Later,
}

/// Parts of a range, and what clients hold of each.
pub type Parts = Vec<(ByteRange, Option<LockType>)>;

/// Stands between the engine, which knows clients only, and programs on the server: what clients
/// hold together is held against those as one.
pub trait Locals: Send + Sync {
    /// Takes bytes from programs, then does `take`, by which the engine takes them from other
    /// clients and which tells how many ranges of the file are held then, if it did; then programs
    /// are kept from what clients hold.
    fn take(
        &self,
        file: &FileKey,
        lock: (ByteRange, LockType),
        take: &mut dyn FnMut() -> Option<usize>,
    ) -> Taken;

    /// Does `give`, by which the engine takes bytes from a client and which tells how many ranges
    /// of the file are held then, if it did; what nobody holds any more, programs may have.
    fn give(&self, file: &FileKey, range: ByteRange, give: &mut dyn FnMut() -> Option<usize>);

    /// Sees to it that no program opens a file unseen that the engine has just delegated; `false`
    /// if one has it open, or an open would not be noticed: then it must not stay delegated.
    fn delegate(&self, file: &FileKey, kind: DelegationKind) -> bool;

    /// Lets programs have what clients have let go of ([`crate::Engine::poll_unlocked`],
    /// [`crate::Engine::poll_undelegated`]).
    fn settle(&self);

    /// Returns whether no program holds bytes that a lock would want.
    fn is_free(&self, file: &FileKey, lock: (ByteRange, LockType)) -> bool;
}

/// A queue of bytes or files that clients have released, so that programs may have them.
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

//! Programs on the server that lock the same files as clients do.

use std::collections::VecDeque;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::table::lock;
use crate::{ByteRange, Engine, FileKey, LockType};

/// What came of an attempt to take bytes of a file from programs on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// They have been taken, and what was to be done then was done.
    Done,
    /// A program holds some of them; nothing was done.
    Held,
    /// Not now: too many files are locked.
    Later,
}

/// Stands between the engine, which knows clients only, and programs on the server: what clients
/// hold together is held against those as one.
pub trait Locals: Send + Sync {
    /// Takes bytes from programs, then does `lock`, by which the engine takes them from other
    /// clients and which tells whether it did; then again they hold what clients hold.
    fn take(
        &self,
        file: &FileKey,
        lock: (ByteRange, LockType),
        take: &mut dyn FnMut() -> bool,
    ) -> Taken;

    /// Lets programs have what clients have let go of ([`Engine::poll_unlocked`]).
    fn settle(&self);

    /// Whether no program holds bytes that a lock would want.
    fn is_free(&self, file: &FileKey, lock: (ByteRange, LockType)) -> bool;
}

/// Bytes that clients have let go of, and programs may have.
#[derive(Default)]
pub(crate) struct Unlocked {
    queue: Mutex<VecDeque<(FileKey, ByteRange)>>,
    waiting: AtomicUsize,
}

impl Unlocked {
    pub(crate) fn push(&self, file: FileKey, range: ByteRange) {
        let mut queue = lock(&self.queue);
        queue.push_back((file, range));
        self.waiting.store(queue.len(), Ordering::Release);
    }
}

impl Engine {
    /// Bytes that a client has let go of, if that is to be told ([`crate::Settings::locals`]): what
    /// is held of them now, [`Engine::held`] tells.
    #[must_use]
    pub fn poll_unlocked(&self) -> Option<(FileKey, ByteRange)> {
        if !self.has_unlocked() {
            return None;
        }
        let mut queue = lock(&self.unlocked.queue);
        let unlocked = queue.pop_front();
        self.unlocked.waiting.store(queue.len(), Ordering::Release);
        unlocked
    }

    /// Whether there are such; costs a look at a number.
    #[must_use]
    pub fn has_unlocked(&self) -> bool {
        self.unlocked.waiting.load(Ordering::Acquire) > 0
    }

    /// What clients together hold of a range, in order and without gaps.
    #[must_use]
    pub fn held(&self, file: &FileKey, range: ByteRange) -> Vec<(ByteRange, Option<LockType>)> {
        let held = self.files.look(file, |file| file.state().locks.united(range));
        held.unwrap_or_else(|| vec![(range, None)])
    }

    /// How many byte ranges of a file clients hold.
    #[must_use]
    pub fn held_count(&self, file: &FileKey) -> usize {
        self.files.look(file, |file| file.state().locks.counts().0).unwrap_or(0)
    }

    pub(crate) fn tell_unlocked(&self, file: FileKey, range: ByteRange) {
        if self.settings.locals {
            self.unlocked.push(file, range);
        }
    }
}

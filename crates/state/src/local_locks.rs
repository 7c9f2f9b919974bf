//! Programs on the server that lock and open the same files as clients do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::file::File;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::table::lock;
use crate::{ByteRange, DelegationKind, Engine, FileKey, LockType, Share};

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
    /// if one has it open, or nobody would be told: then it must not stay delegated.
    fn delegate(&self, file: &FileKey, kind: DelegationKind) -> bool;

    /// Lets programs have what clients have let go of ([`Engine::poll_unlocked`],
    /// [`Engine::poll_undelegated`]).
    fn settle(&self);

    /// Whether no program holds bytes that a lock would want.
    fn is_free(&self, file: &FileKey, lock: (ByteRange, LockType)) -> bool;
}

/// What clients have let go of, and programs may have.
pub(crate) struct Freed<T> {
    queue: Mutex<VecDeque<T>>,
    waiting: AtomicUsize,
}

impl<T> Default for Freed<T> {
    fn default() -> Self {
        Self { queue: Mutex::new(VecDeque::new()), waiting: AtomicUsize::new(0) }
    }
}

impl<T> Freed<T> {
    fn push(&self, freed: T) {
        let mut queue = lock(&self.queue);
        queue.push_back(freed);
        self.waiting.store(queue.len(), Ordering::Release);
    }

    fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut queue = lock(&self.queue);
        let freed = queue.pop_front();
        self.waiting.store(queue.len(), Ordering::Release);
        freed
    }

    fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }
}

impl Engine {
    /// Bytes that a client has let go of, if that is to be told ([`crate::Settings::locals`]): what
    /// is held of them now, [`Engine::held`] tells.
    #[must_use]
    pub fn poll_unlocked(&self) -> Option<(FileKey, ByteRange)> {
        self.unlocked.pop()
    }

    /// A file of which a delegation is over, if that is to be told ([`crate::Settings::locals`]):
    /// what is delegated of it now, [`Engine::delegated`] tells.
    #[must_use]
    pub fn poll_undelegated(&self) -> Option<FileKey> {
        self.undelegated.pop()
    }

    /// Whether there are bytes or files that clients have let go of; costs a look at two numbers.
    #[must_use]
    pub fn has_freed(&self) -> bool {
        !self.unlocked.is_empty() || !self.undelegated.is_empty()
    }

    /// What is delegated of a file: for writing, if any of it is.
    #[must_use]
    pub fn delegated(&self, file: &FileKey) -> Option<DelegationKind> {
        self.files.look(file, |file| file.state().delegations.strongest()).flatten()
    }

    /// Recalls a file because a program on the server waits for it, and goes on at `until`
    /// whatever happens: what has not been given back by then is revoked then, even if a lease's
    /// time has not passed (RFC 8881, 10.4.5 would give the client that), so that the two never
    /// both believe that they are alone.
    pub fn program_waits(&self, now: Duration, key: &FileKey, until: Duration) {
        if let Some(file) = self.recall_for_program(now, key) {
            file.state().delegations.hurry(until);
        }
    }

    /// Recalls a file because a program on the server has renamed, removed or linked it, or changed
    /// its attributes. It does not wait, and who holds the file has a lease's time.
    pub fn program_changed(&self, now: Duration, key: &FileKey) {
        let _ = self.recall_for_program(now, key);
    }

    fn recall_for_program(&self, now: Duration, key: &FileKey) -> Option<Arc<File>> {
        let file = self.files.get(key)?;
        let share = Share::access(Share::BOTH);
        // A program that waits is told of the recall when it need not wait any more.
        let _ = self.unless_expired(now, || self.try_break(now, &file, (None, share)));
        Some(file)
    }

    /// How many byte ranges of a file clients hold, and what they together hold of one, in order
    /// and without gaps: nothing where there are none or more than `most`.
    #[must_use]
    pub fn held(&self, file: &FileKey, range: ByteRange, most: usize) -> (usize, Parts) {
        let held = self.files.look(file, |file| {
            let locks = &file.state().locks;
            let (count, _) = locks.counts();
            let counted = (1..=most).contains(&count);
            (count, if counted { locks.united(range) } else { Vec::new() })
        });
        held.unwrap_or_default()
    }

    pub(crate) fn tell_unlocked(&self, file: FileKey, range: ByteRange) {
        if self.settings.locals {
            self.unlocked.push((file, range));
        }
    }

    pub(crate) fn tell_undelegated(&self, file: FileKey) {
        if self.settings.locals {
            self.undelegated.push(file);
        }
    }
}

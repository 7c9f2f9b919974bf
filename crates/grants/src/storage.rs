//! The storage of grants: changes are stored one at a time, with pauses after a failure.

use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_vfs::{AsServer, BlockingHook, run_through};

use crate::Moment;
use crate::limits::{STORAGE_PAUSE_FIRST_MILLISECONDS, STORAGE_PAUSE_MAX_MILLISECONDS};
use crate::record::{Medium, MediumError, Record};

/// The storage medium of grants. A change locks the storage, decides, stores, and only then changes
/// the memory: so readers of rights never wait for the disk.
pub(crate) struct Storage {
    medium: Box<dyn Medium>,
    failure: Mutex<Option<FailedWrite>>,
    /// Runs a change, which may sleep.
    pub(crate) blocking: BlockingHook,
}

/// A failed write. It is unknown what is stored, so the next attempt stores everything.
struct FailedWrite {
    why: String,
    next_try: Moment,
    pause_milliseconds: u64,
}

/// The lock of one change. A thread that has it may lock the memory, but a thread that has the
/// memory locked must not wait for it.
pub(crate) struct ChangeTurn<'a> {
    medium: &'a dyn Medium,
    failure: MutexGuard<'a, Option<FailedWrite>>,
}

/// The occasion of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Time has passed, or a key made a change: after a failure, wait until the next attempt is
    /// due.
    Usual,
    /// An administrator made a change, or the server ends: try at once.
    AtOnce,
}

impl Storage {
    pub(crate) fn new(medium: Box<dyn Medium>) -> Self {
        Self { medium, failure: Mutex::default(), blocking: |work| work() }
    }

    /// Runs work that takes long or sleeps.
    pub(crate) fn patiently<T>(&self, work: impl FnOnce() -> T) -> T {
        run_through(self.blocking, work)
    }

    /// Runs a change with the storage locked. The thread may sleep.
    pub(crate) fn in_turn<T>(&self, change: impl FnOnce(&mut ChangeTurn<'_>) -> T) -> T {
        self.patiently(|| {
            let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut ChangeTurn { medium: &*self.medium, failure })
        })
    }

    /// The error of the last write, if it failed.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map(|failure| failure.why.clone())
    }
}

impl ChangeTurn<'_> {
    /// Returns whether a write has failed and the next attempt is not due yet.
    pub(crate) fn rests(&self, now: Moment) -> bool {
        self.failure.as_ref().is_some_and(|failure| now < failure.next_try)
    }

    /// Returns whether a write has failed and nothing was stored since.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Puts records on stable storage. After a failure, everything that is `known` is stored again
    /// first.
    pub(crate) fn store(
        &mut self,
        (now, urgency): (Moment, Urgency),
        known: impl FnOnce() -> Vec<Record>,
        records: &[Record],
    ) -> Result<(), MediumError> {
        if urgency == Urgency::Usual && self.rests(now) {
            return Err(self.refusal(now).into());
        }
        let stored = self.write(known, records);
        match &stored {
            Ok(()) => *self.failure = None,
            Err(error) => self.failed(now, error.to_string()),
        }
        stored
    }

    /// Writes under the server's own identity: the thread may have served a caller.
    fn write(
        &self,
        known: impl FnOnce() -> Vec<Record>,
        records: &[Record],
    ) -> Result<(), MediumError> {
        let server = AsServer::here()?;
        self.repair(&server, known)?;
        if records.is_empty() { Ok(()) } else { self.medium.store(&server, records) }
    }

    fn repair(
        &self,
        server: &AsServer,
        known: impl FnOnce() -> Vec<Record>,
    ) -> Result<(), MediumError> {
        if self.has_failed() { self.medium.replace(server, &known()) } else { Ok(()) }
    }

    fn failed(&mut self, now: Moment, why: String) {
        let pause = self.failure.as_ref().map_or(STORAGE_PAUSE_FIRST_MILLISECONDS, |before| {
            (before.pause_milliseconds * 2).min(STORAGE_PAUSE_MAX_MILLISECONDS)
        });
        let next_try = now.after_milliseconds(pause);
        *self.failure = Some(FailedWrite { why, next_try, pause_milliseconds: pause });
    }

    fn refusal(&self, now: Moment) -> String {
        let Some(failure) = &*self.failure else { return String::new() };
        let seconds = failure.next_try.0.saturating_sub(now.0).div_ceil(1_000);
        format!("{}; the next attempt is in {seconds} s", failure.why)
    }
}

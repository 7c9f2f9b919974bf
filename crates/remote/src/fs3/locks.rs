//! Byte-range locks by NLM, version 4 (RFC 1813, appendix II). A blocking lock is requested again
//! and again, because the server cannot call this client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use comity_proto::nlm::{Nlm4Holder, Nlm4Res, Nlm4Stats};
use comity_vfs::{
    Handle, HeldLock, Interrupt, LockOutcome, LockOwner, LockRequest, OpenId, RangeLock, Result,
    Status,
};
use comity_xdr::Decoder;

use super::remote3::Remote3;
use super::status::malformed;
use super::undone_locks::{LockKey, Undoing};
use crate::compound::OpenOwner;
use crate::limits::LOCKS_MAX;
use crate::machine::pause;
use crate::stateless::ProgramFinder;

/// The locks of a mount.
pub(super) struct LockManager {
    pub(super) programs: ProgramFinder,
    /// The name of this machine.
    pub(super) caller_name: Vec<u8>,
    held: Mutex<HeldLocks>,
    /// Locks that are being undone because their callers were interrupted.
    pub(super) undoing: Undoing,
    /// The number of connections made when the locks were last reclaimed.
    connections: AtomicU64,
    /// True if an open has lost its locks.
    has_lost: AtomicBool,
}

#[derive(Debug, Default)]
struct HeldLocks {
    locks: Vec<NlmLock>,
    /// The numbers of lock owners (`svid`).
    owners: HashMap<LockOwner, i32>,
    last_owner: i32,
    /// Files whose locks were lost, until their opens are closed.
    lost: Vec<(OpenId, Handle)>,
}

/// A lock that is held or requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NlmLock {
    open: OpenId,
    pub(super) node: Handle,
    pub(super) owner: LockOwner,
    /// The opener of the file, whose credential is used for calls.
    pub(super) caller: Arc<OpenOwner>,
    pub(super) bytes: (u64, u64),
    pub(super) is_exclusive: bool,
}

impl NlmLock {
    /// The file and the owner of the lock.
    pub(super) const fn key(&self) -> LockKey {
        (self.node, self.owner)
    }

    const fn kind(&self) -> RangeLock {
        if self.is_exclusive { RangeLock::Exclusive } else { RangeLock::Shared }
    }
}

impl LockManager {
    /// Makes a lock manager. `programs` finds that of the server. The numbers of owners begin at
    /// `seed`, so that they differ from those of other mounts of this machine.
    pub(super) fn new(programs: ProgramFinder, caller_name: &[u8], seed: u32) -> Self {
        let last_owner = (seed & 0x3fff_ffff) as i32;
        let held = Mutex::new(HeldLocks { last_owner, ..HeldLocks::default() });
        let (connections, has_lost) = (AtomicU64::new(0), AtomicBool::new(false));
        let (caller_name, undoing) = (caller_name.to_vec(), Undoing::default());
        Self { programs, caller_name, held, undoing, connections, has_lost }
    }

    /// The locks and free ranges that remain in the bytes of a lock after it is undone.
    pub(super) fn below(&self, undone: &NlmLock) -> Vec<(NlmLock, RangeLock)> {
        self.held().below(undone)
    }

    /// Fails with `Io` if locks of a file were lost.
    pub(super) fn check(&self, node: &Handle) -> Result<()> {
        if self.has_lost.load(Ordering::Relaxed)
            && self.held().lost.iter().any(|(_, lost)| lost == node)
        {
            return Err(Status::Io);
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, HeldLocks> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldLocks {
    fn number(&mut self, owner: LockOwner) -> i32 {
        let (owners, last) = (&mut self.owners, &mut self.last_owner);
        *owners.entry(owner).or_insert_with(|| {
            *last = last.wrapping_add(1) & i32::MAX;
            *last
        })
    }

    /// Removes the bytes of `held` from its owner's locks; with a lock other than `Free`, adds it.
    fn replace(&mut self, held: &NlmLock, lock: RangeLock) {
        let (first, last) = held.bytes;
        let mut kept = Vec::with_capacity(self.locks.len() + 2);
        for old in self.locks.drain(..) {
            if old.key() != held.key() || old.bytes.1 < first || old.bytes.0 > last {
                kept.push(old);
                continue;
            }
            if old.bytes.0 < first {
                kept.push(NlmLock { bytes: (old.bytes.0, first - 1), ..old.clone() });
            }
            if old.bytes.1 > last {
                kept.push(NlmLock { bytes: (last + 1, old.bytes.1), ..old });
            }
        }
        if lock != RangeLock::Free {
            kept.push(held.clone());
        }
        self.locks = kept;
        if !self.locks.iter().any(|left| left.owner == held.owner) {
            self.owners.remove(&held.owner);
        }
    }

    /// The locks and free ranges that remain in the bytes of a lock after it is undone.
    fn below(&self, undone: &NlmLock) -> Vec<(NlmLock, RangeLock)> {
        let (mut at, last) = undone.bytes;
        let mut found = Vec::new();
        let of_owner = self.locks.iter().filter(|lock| lock.key() == undone.key());
        let mut held: Vec<&NlmLock> =
            of_owner.filter(|lock| lock.bytes.1 >= at && lock.bytes.0 <= last).collect();
        held.sort_unstable_by_key(|lock| lock.bytes);
        let free = |bytes| (NlmLock { bytes, ..undone.clone() }, RangeLock::Free);
        for lock in held {
            let bytes = (lock.bytes.0.max(at), lock.bytes.1.min(last));
            if bytes.0 > at {
                found.push(free((at, bytes.0 - 1)));
            }
            found.push((NlmLock { bytes, ..lock.clone() }, lock.kind()));
            if bytes.1 == last {
                return found;
            }
            at = bytes.1 + 1;
        }
        found.push(free((at, last)));
        found
    }
}

impl Remote3 {
    pub(super) fn lock(&self, wanted: &LockRequest) -> Result<LockOutcome> {
        let held = self.wanted_lock(wanted)?;
        if wanted.lock == RangeLock::Free {
            self.unlock(&held)?;
            return Ok(LockOutcome::Done);
        }
        self.locks.check(&held.node)?;
        self.wait_for_undoing(&held)?;
        if self.locks.held().locks.len() >= LOCKS_MAX {
            return Err(Status::Delay);
        }
        for attempt in 0.. {
            match self.ask_for_lock(&held, false)? {
                Nlm4Stats::Granted => break,
                Nlm4Stats::Denied | Nlm4Stats::Blocked if !wanted.waits => {
                    return Ok(LockOutcome::Denied);
                }
                Nlm4Stats::Denied | Nlm4Stats::Blocked => wait(attempt)?,
                Nlm4Stats::Deadlck => return Ok(LockOutcome::Deadlock),
                failed => return Err(status(failed)),
            }
        }
        self.locks.held().replace(&held, wanted.lock);
        Ok(LockOutcome::Done)
    }

    fn wanted_lock(&self, wanted: &LockRequest) -> Result<NlmLock> {
        let (node, caller) = self.opens.opened(wanted.open)?;
        let is_exclusive = wanted.lock == RangeLock::Exclusive;
        let LockRequest { open, owner, bytes, .. } = *wanted;
        Ok(NlmLock { open, node, owner, caller, bytes, is_exclusive })
    }

    fn unlock(&self, held: &NlmLock) -> Result<()> {
        // An interruption of this wait does not keep the UNLOCK from being sent.
        self.wait_for_undoing(held).ok();
        let number = self.locks.held().number(held.owner);
        let reply = self.ask_to_unlock(held, number);
        self.locks.held().replace(held, RangeLock::Free);
        match reply?.read::<Nlm4Res<'_>>().map_err(malformed)?.stat {
            Nlm4Stats::Granted => Ok(()),
            failed => Err(status(failed)),
        }
    }

    /// Waits until no lock of this owner and file is being undone.
    fn wait_for_undoing(&self, held: &NlmLock) -> Result<()> {
        for attempt in 0.. {
            if !self.locks.undoing.has(&held.key()) {
                break;
            }
            wait(attempt)?;
        }
        Ok(())
    }

    fn ask_for_lock(&self, held: &NlmLock, reclaim: bool) -> Result<Nlm4Stats> {
        let number = self.locks.held().number(held.owner);
        let reply = self.ask_to_lock(held, number, reclaim)?;
        Ok(reply.read::<Nlm4Res<'_>>().map_err(malformed)?.stat)
    }

    pub(super) fn find_lock(&self, wanted: &LockRequest) -> Result<Option<HeldLock>> {
        let asked = self.wanted_lock(wanted)?;
        let number = self.locks.held().number(asked.owner);
        let reply = self.ask_who_holds(&asked, number)?;
        let mut results = Decoder::new(reply.results());
        match results.value::<Nlm4Res<'_>>().map_err(malformed)?.stat {
            Nlm4Stats::Granted => Ok(None),
            Nlm4Stats::Denied => {
                let holder: Nlm4Holder<'_> = results.value().map_err(malformed)?;
                let last = match holder.l_len {
                    0 => u64::MAX,
                    length => holder.l_offset.saturating_add(length - 1),
                };
                let is_exclusive = holder.exclusive;
                Ok(Some(HeldLock { bytes: (holder.l_offset, last), is_exclusive }))
            }
            failed => Err(status(failed)),
        }
    }

    /// Unlocks all locks of an open.
    pub(super) fn unlock_open(&self, open: OpenId) {
        let of_open: Vec<NlmLock> = {
            let mut held = self.locks.held();
            held.lost.retain(|(lost, _)| *lost != open);
            self.locks.has_lost.store(!held.lost.is_empty(), Ordering::Relaxed);
            held.locks.iter().filter(|lock| lock.open == open).cloned().collect()
        };
        for lock in of_open {
            if let Err(status) = self.unlock(&lock) {
                tracing::warn!(%status, "the server may still hold a lock of a closed file");
            }
        }
    }

    /// Reclaims all locks if connections were made since the last call: the server may have
    /// restarted and forgotten them. Returns a file whose locks are lost.
    pub(super) fn assert_locks(&self) -> Option<Handle> {
        let made = self.engine.with(|machine, _| machine.connections_made());
        if self.locks.connections.swap(made, Ordering::AcqRel) == made {
            return None;
        }
        let locks = self.locks.held().locks.clone();
        let lost = locks.into_iter().filter(|lock| !self.holds_again(lock));
        let mut found = None;
        for lock in lost {
            tracing::warn!(file = ?lock.node, "a lock was lost when the server restarted");
            let mut held = self.locks.held();
            held.locks.retain(|one| *one != lock);
            held.lost.push((lock.open, lock.node));
            self.locks.has_lost.store(true, Ordering::Relaxed);
            found = Some(lock.node);
        }
        found
    }

    /// Takes a lock again: first as a reclaim, then as a new lock, in case the grace period is
    /// over. A server that has not restarted grants both to the lock's owner.
    fn holds_again(&self, lock: &NlmLock) -> bool {
        let granted = |asked: Result<Nlm4Stats>| asked == Ok(Nlm4Stats::Granted);
        granted(self.ask_for_lock(lock, true)) || granted(self.ask_for_lock(lock, false))
    }
}

/// Waits before a lock is requested again.
fn wait(attempt: u32) -> Result<()> {
    if Interrupt::is_raised() {
        return Err(Status::Interrupted);
    }
    thread::park_timeout(pause(attempt));
    Ok(())
}

const fn status(failed: Nlm4Stats) -> Status {
    match failed {
        Nlm4Stats::Rofs => Status::RoFs,
        Nlm4Stats::StaleFh => Status::Stale,
        Nlm4Stats::Fbig => Status::FBig,
        Nlm4Stats::DeniedNolocks => Status::NotSupp,
        _ => Status::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(owner: u64, bytes: (u64, u64)) -> NlmLock {
        let node = Handle::new(b"file").unwrap();
        let caller = Arc::new(OpenOwner { id: 1, credential: Vec::new() });
        let (open, owner) = (OpenId(1), LockOwner(owner));
        NlmLock { open, node, owner, caller, bytes, is_exclusive: true }
    }

    #[test]
    fn an_unlock_changes_only_the_locks_of_its_owner() {
        let mut locks = HeldLocks::default();
        locks.replace(&held(1, (0, 99)), RangeLock::Exclusive);
        locks.replace(&held(2, (200, u64::MAX)), RangeLock::Exclusive);
        locks.replace(&held(1, (10, 19)), RangeLock::Free);
        let bytes: Vec<_> = locks.locks.iter().map(|lock| lock.bytes).collect();
        assert_eq!(bytes, [(0, 9), (20, 99), (200, u64::MAX)]);
        locks.replace(&held(2, (0, u64::MAX)), RangeLock::Free);
        locks.replace(&held(1, (0, u64::MAX)), RangeLock::Free);
        assert!(locks.locks.is_empty() && locks.owners.is_empty());
    }

    #[test]
    fn undoing_a_lock_restores_the_earlier_locks_of_its_owner() {
        let mut locks = HeldLocks::default();
        let shared = NlmLock { is_exclusive: false, ..held(1, (10, 19)) };
        locks.replace(&shared, RangeLock::Shared);
        locks.replace(&held(1, (90, 200)), RangeLock::Exclusive);
        locks.replace(&held(2, (40, 49)), RangeLock::Exclusive);
        let below = locks.below(&held(1, (0, 99)));
        let found: Vec<_> = below.iter().map(|(lock, kind)| (lock.bytes, *kind)).collect();
        let (free, shared, exclusive) = (RangeLock::Free, RangeLock::Shared, RangeLock::Exclusive);
        let expected =
            [((0, 9), free), ((10, 19), shared), ((20, 89), free), ((90, 99), exclusive)];
        assert_eq!(found, expected);
        let all = locks.below(&held(3, (0, u64::MAX)));
        assert_eq!(all, [(held(3, (0, u64::MAX)), free)]);
    }
}

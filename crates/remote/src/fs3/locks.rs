//! Byte-range locks by NLM, version 4 (RFC 1813, appendix II). A lock that is waited for is asked
//! for again and again: the server cannot call this client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use comity_proto::nlm::{
    self, Nlm4Holder, Nlm4Lock, Nlm4Lockargs, Nlm4Res, Nlm4Stats, Nlm4Testargs, Nlm4Unlockargs,
    procedure,
};
use comity_vfs::{
    Handle, HeldLock, Interrupt, LockOutcome, LockOwner, LockRequest, OpenId, RangeLock, Result,
    Status,
};
use comity_xdr::{Decoder, Encode, Opaque};

use super::remote3::Remote3;
use super::status::malformed;
use crate::limits::LOCKS_MAX;
use crate::machine::pause;
use crate::server_handle::ServerHandle;
use crate::stateless::{ProgramFinder, StatelessCall, StatelessReply};

/// The locks of a mount.
pub(super) struct LockManager {
    programs: ProgramFinder,
    /// The name of this machine.
    caller_name: Vec<u8>,
    held: Mutex<HeldLocks>,
    /// The connections that had been made when the locks were asserted last.
    connections: AtomicU64,
    /// True if some open has lost its locks.
    has_lost: AtomicBool,
}

#[derive(Debug, Default)]
struct HeldLocks {
    locks: Vec<NlmLock>,
    /// The numbers of owners (`svid`).
    owners: HashMap<LockOwner, i32>,
    last_owner: i32,
    /// Files whose locks were lost, until their opens are closed.
    lost: Vec<(OpenId, Handle)>,
}

/// A lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NlmLock {
    open: OpenId,
    node: Handle,
    owner: LockOwner,
    bytes: (u64, u64),
    is_exclusive: bool,
}

impl LockManager {
    /// Locks by the lock manager that `programs` finds. The numbers of owners begin at `seed`, so
    /// that other mounts of this machine are other owners.
    pub(super) fn new(programs: ProgramFinder, caller_name: &[u8], seed: u32) -> Self {
        let last_owner = (seed & 0x3fff_ffff) as i32;
        let held = Mutex::new(HeldLocks { last_owner, ..HeldLocks::default() });
        let (connections, has_lost) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { programs, caller_name: caller_name.to_vec(), held, connections, has_lost }
    }

    /// Fails if locks of a file were lost.
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

    /// Takes bytes of an owner out of what is held, and puts a lock there if there is one.
    fn replace(&mut self, held: NlmLock, lock: RangeLock) {
        let (first, last) = held.bytes;
        let mut kept = Vec::with_capacity(self.locks.len() + 2);
        for old in self.locks.drain(..) {
            let is_other = old.node != held.node || old.owner != held.owner;
            if is_other || old.bytes.1 < first || old.bytes.0 > last {
                kept.push(old);
                continue;
            }
            if old.bytes.0 < first {
                kept.push(NlmLock { bytes: (old.bytes.0, first - 1), ..old });
            }
            if old.bytes.1 > last {
                kept.push(NlmLock { bytes: (last + 1, old.bytes.1), ..old });
            }
        }
        if lock != RangeLock::Free {
            kept.push(held);
        }
        self.locks = kept;
        if !self.locks.iter().any(|left| left.owner == held.owner) {
            self.owners.remove(&held.owner);
        }
    }
}

impl Remote3 {
    pub(super) fn lock(&self, wanted: &LockRequest) -> Result<LockOutcome> {
        let node = self.opens.node(wanted.open)?;
        let held = NlmLock {
            open: wanted.open,
            node,
            owner: wanted.owner,
            bytes: wanted.bytes,
            is_exclusive: wanted.lock == RangeLock::Exclusive,
        };
        if wanted.lock == RangeLock::Free {
            self.unlock(&held)?;
            return Ok(LockOutcome::Done);
        }
        self.locks.check(&node)?;
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
        self.locks.held().replace(held, wanted.lock);
        Ok(LockOutcome::Done)
    }

    fn unlock(&self, held: &NlmLock) -> Result<()> {
        let file = self.file(&held.node)?;
        let number = self.locks.held().number(held.owner);
        let owner = held.owner.0.to_be_bytes();
        let alock = self.alock(&file, held, (number, &owner));
        let arguments = Nlm4Unlockargs { cookie: Opaque(&owner), alock };
        let reply = self.ask_nlm(procedure::UNLOCK, &arguments, is_in_grace);
        self.locks.held().replace(*held, RangeLock::Free);
        match reply?.read::<Nlm4Res<'_>>().map_err(malformed)?.stat {
            Nlm4Stats::Granted => Ok(()),
            failed => Err(status(failed)),
        }
    }

    fn ask_for_lock(&self, held: &NlmLock, reclaim: bool) -> Result<Nlm4Stats> {
        let file = self.file(&held.node)?;
        let number = self.locks.held().number(held.owner);
        let owner = held.owner.0.to_be_bytes();
        let alock = self.alock(&file, held, (number, &owner));
        let (cookie, block, exclusive) = (Opaque(&owner[..]), false, held.is_exclusive);
        let arguments = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state: 0 };
        let is_put_off = if reclaim { |_: &[u8]| false } else { is_in_grace };
        let reply = self.ask_nlm(procedure::LOCK, &arguments, is_put_off)?;
        Ok(reply.read::<Nlm4Res<'_>>().map_err(malformed)?.stat)
    }

    pub(super) fn find_lock(&self, wanted: &LockRequest) -> Result<Option<HeldLock>> {
        let node = self.opens.node(wanted.open)?;
        let is_exclusive = wanted.lock == RangeLock::Exclusive;
        let (open, owner, bytes) = (wanted.open, wanted.owner, wanted.bytes);
        let asked = NlmLock { open, node, owner, bytes, is_exclusive };
        let file = self.file(&node)?;
        let (number, owner) = (self.locks.held().number(owner), owner.0.to_be_bytes());
        let alock = self.alock(&file, &asked, (number, &owner));
        let arguments =
            Nlm4Testargs { cookie: Opaque(&owner), exclusive: asked.is_exclusive, alock };
        let reply = self.ask_nlm(procedure::TEST, &arguments, is_in_grace)?;
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

    /// Gives back the locks of an open.
    pub(super) fn unlock_open(&self, open: OpenId) {
        let of_open: Vec<NlmLock> = {
            let mut held = self.locks.held();
            held.lost.retain(|(lost, _)| *lost != open);
            self.locks.has_lost.store(!held.lost.is_empty(), Ordering::Relaxed);
            held.locks.iter().filter(|lock| lock.open == open).copied().collect()
        };
        for lock in of_open {
            if let Err(status) = self.unlock(&lock) {
                tracing::warn!(%status, "a lock of a closed file may still be held");
            }
        }
    }

    /// Takes all locks again if connections were made since that was done last: the server may have
    /// restarted, and then remembers none. Returns a file whose locks are lost.
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

    /// Takes a lock again: by a reclaim while the server lets clients reclaim, and else as if anew,
    /// which a server that has not restarted grants to the lock's owner.
    fn holds_again(&self, lock: &NlmLock) -> bool {
        let granted = |asked: Result<Nlm4Stats>| asked == Ok(Nlm4Stats::Granted);
        granted(self.ask_for_lock(lock, true)) || granted(self.ask_for_lock(lock, false))
    }

    fn alock<'a>(
        &'a self,
        file: &'a ServerHandle,
        held: &NlmLock,
        (svid, owner): (i32, &'a [u8]),
    ) -> Nlm4Lock<'a> {
        let (first, last) = held.bytes;
        let l_len = if last == u64::MAX { 0 } else { last - first + 1 };
        let (caller_name, fh) = (Opaque(self.locks.caller_name.as_slice()), Opaque(file.bytes()));
        Nlm4Lock { caller_name, fh, oh: Opaque(owner), svid, l_offset: first, l_len }
    }

    fn ask_nlm(
        &self,
        procedure: u32,
        arguments: &impl Encode,
        is_put_off: fn(&[u8]) -> bool,
    ) -> Result<StatelessReply> {
        let procedure = (nlm::PROGRAM, nlm::VERSION, procedure);
        let call = || StatelessCall {
            is_put_off,
            ..StatelessCall::new(procedure, &self.owner.credential, arguments)
        };
        self.locks.programs.ask_lasting(&self.engine, (nlm::PROGRAM, nlm::VERSION), &call)
    }
}

/// Waits before a lock is asked for again.
fn wait(attempt: u32) -> Result<()> {
    if Interrupt::is_raised() {
        return Err(Status::Interrupted);
    }
    thread::park_timeout(pause(attempt));
    Ok(())
}

/// Returns whether the server waits for clients that reclaim.
fn is_in_grace(results: &[u8]) -> bool {
    let told = Decoder::new(results).value::<Nlm4Res<'_>>();
    told.is_ok_and(|told| told.stat == Nlm4Stats::DeniedGracePeriod)
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
        NlmLock { open: OpenId(1), node, owner: LockOwner(owner), bytes, is_exclusive: true }
    }

    #[test]
    fn an_unlock_cuts_only_what_its_owner_holds() {
        let mut locks = HeldLocks::default();
        locks.replace(held(1, (0, 99)), RangeLock::Exclusive);
        locks.replace(held(2, (200, u64::MAX)), RangeLock::Exclusive);
        locks.replace(held(1, (10, 19)), RangeLock::Free);
        let bytes: Vec<_> = locks.locks.iter().map(|lock| lock.bytes).collect();
        assert_eq!(bytes, [(0, 9), (20, 99), (200, u64::MAX)]);
        locks.replace(held(2, (0, u64::MAX)), RangeLock::Free);
        locks.replace(held(1, (0, u64::MAX)), RangeLock::Free);
        assert!(locks.locks.is_empty() && locks.owners.is_empty());
    }
}

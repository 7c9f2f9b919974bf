//! Byte-range locks (RFC 8881, 18.10 to 18.12).

use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{
    ExistLockOwner4, Lock4args, Lock4denied, Locker4, Lockt4args, Locku4args, Nfsstat4,
    OpenToLockOwner4, StateOwner4, Stateid4, operation as op, share,
};
use comity_vfs::{HeldLock, LockOutcome, LockOwner, LockRequest, OpenId, RangeLock};
use comity_xdr::Opaque;

use super::delegations::access;
use super::file_states::OpenKey;
use super::job::{Job, LockTask, LockTaskKind, OpenTask, TaskClaim};
use super::lock_states::LockedRange;
use super::machine::ClientMachine;
use super::opens::adopt;
use super::pending::{PendingRequest, RequestStage};
use super::prepare::Readiness;
use super::request::SessionAnswer;
use crate::compound::{CompoundCall, CompoundReply, CompoundRequest, OpFailure};
use crate::machine::{CallFailure, Notice, pause};

/// Pause before a blocked lock is requested again although the server sends CB_NOTIFY_LOCK: that is
/// only a hint and may be lost (RFC 8881, 20.11).
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// Bytes of the name of a lock-owner: the numbers of open-owner and lock-owner.
const LOCK_OWNER_BYTES: usize = 12;

impl ClientMachine {
    /// Accepts a caller's request for a lock, unlock or test.
    pub(super) fn lock(&mut self, now: Duration, wanted: LockRequest, kind: LockTaskKind) -> u64 {
        let Some(hold) = self.states.held(wanted.open.0) else {
            return self.answer_at_once(Err(CallFailure::StateLost));
        };
        let is_free = wanted.lock == RangeLock::Free;
        let kind = if is_free { LockTaskKind::Unlock } else { kind };
        if self.states.open(&hold.key).is_some_and(|open| open.is_lost) {
            // A lock that is lost counts as unlocked.
            let lost = Err(CallFailure::StateLost);
            return self.answer_at_once(if is_free {
                Ok(SessionAnswer::Lock(LockOutcome::Done))
            } else {
                lost
            });
        }
        let task = LockTask { kind, key: hold.key, wanted, has_turn: false };
        self.insert_for_caller(now, PendingRequest::unwritten(Job::Lock(task), now))
    }

    /// Unlocks all locks that were taken with a caller's open.
    pub(super) fn unlock_all(&mut self, now: Duration, open: u64, key: &OpenKey) {
        let Some(state) = self.states.files.get(&key.0) else { return };
        let of_open = state.locks.iter().filter(|((_, _), locks)| locks.hold == open);
        let owners: Vec<u64> = of_open.map(|((_, owner), _)| *owner).collect();
        for owner in owners {
            let wanted = LockRequest {
                open: OpenId(open),
                owner: LockOwner(owner),
                bytes: (0, u64::MAX),
                lock: RangeLock::Free,
                waits: false,
            };
            let kind = LockTaskKind::Unlock;
            let task = LockTask { kind, key: *key, wanted, has_turn: false };
            self.insert(PendingRequest::unwritten(Job::Lock(task), now));
        }
    }

    /// Builds an operation on locks once no other operation on the open is under way.
    pub(super) fn prepare_lock(&mut self, now: Duration, id: u64, task: &LockTask) -> Readiness {
        if task.kind == LockTaskKind::Find {
            let request = self.find_request(task);
            return self.write_or_end(id, request);
        }
        let Some(open) = self.states.open_mut(&task.key) else {
            self.lock_lost(id, task);
            return Readiness::Over;
        };
        if open.is_busy && !task.has_turn {
            return Readiness::Blocked(task.key);
        }
        if task.kind == LockTaskKind::Unlock {
            self.take_turn(id, task);
            let request = self.unlock_request(task);
            self.forget_range(task);
            if request.is_none() {
                self.end_turn(now, id, task);
                self.answer(id, Ok(SessionAnswer::Lock(LockOutcome::Done)));
                return Readiness::Over;
            }
            return self.write_or_end(id, request);
        }
        let needed =
            if task.wanted.lock == RangeLock::Exclusive { share::WRITE } else { share::READ };
        if !open.is_open_for(open.held()) || open.stateid.is_none() {
            // LOCK needs a stateid of an open, even if the file is delegated.
            open.is_busy = true;
            let (owner, wanted) = (Arc::clone(&open.owner), open.held() | needed);
            let is_delegated = self.states.delegation(&task.key.0).is_some();
            let claim = if is_delegated { TaskClaim::Delegation } else { TaskClaim::Use };
            self.begin_open(now, OpenTask::own(owner, task.key.0, access(wanted), claim));
            return Readiness::Blocked(task.key);
        }
        self.take_turn(id, task);
        let request = self.lock_request(task);
        if request.is_none() {
            self.end_turn(now, id, task);
        }
        self.write_or_end(id, request)
    }

    /// Forgets a range before the UNLOCK is sent: if the server restarts before it replies, the
    /// range must not be reclaimed, because another client may lock it.
    fn forget_range(&mut self, task: &LockTask) {
        let state = self.states.files.get_mut(&task.key.0);
        if let Some(locks) = state.and_then(|state| state.locks.get_mut(&lock_key(task))) {
            locks.ranges.set(task.wanted.bytes, None);
        }
    }

    fn write_or_end(&mut self, id: u64, request: Option<CompoundRequest>) -> Readiness {
        match request {
            Some(request) => {
                self.write(id, request);
                Readiness::Ready
            }
            None => {
                self.answer(id, Err(CallFailure::StateLost));
                Readiness::Over
            }
        }
    }

    fn take_turn(&mut self, id: u64, task: &LockTask) {
        if let Some(open) = self.states.open_mut(&task.key) {
            open.is_busy = true;
        }
        self.set_turn(id, true);
    }

    fn set_turn(&mut self, id: u64, has_turn: bool) {
        if let Some(Job::Lock(task)) = self.requests.get_mut(&id).map(|pending| &mut pending.job) {
            task.has_turn = has_turn;
        }
    }

    fn end_turn(&mut self, now: Duration, id: u64, task: &LockTask) {
        self.set_turn(id, false);
        if let Some(open) = self.states.open_mut(&task.key) {
            open.is_busy = false;
        }
        self.open_is_free(now, &task.key);
    }

    fn call(&self, task: &LockTask) -> Option<CompoundCall> {
        let open = self.states.open(&task.key)?;
        Some(CompoundCall::new(self.minor, &open.owner.credential).on(&task.key.0))
    }

    fn lock_request(&self, task: &LockTask) -> Option<CompoundRequest> {
        let open_stateid = self.states.open(&task.key)?.stateid?;
        let known = self.states.files.get(&task.key.0)?.locks.get(&lock_key(task));
        let name = lock_owner_name(task);
        let locker = match known.and_then(|locks| locks.stateid) {
            Some(stateid) => {
                let lock_stateid = newest(stateid);
                Locker4::Exist(ExistLockOwner4 { lock_stateid, lock_seqid: 0 })
            }
            None => Locker4::New(OpenToLockOwner4 {
                open_seqid: 0,
                open_stateid: newest(open_stateid),
                lock_seqid: 0,
                lock_owner: StateOwner4 { clientid: 0, owner: Opaque(&name) },
            }),
        };
        let (offset, length) = LockedRange::on_wire(task.wanted.bytes);
        let is_exclusive = task.wanted.lock == RangeLock::Exclusive;
        let reclaim = task.kind == LockTaskKind::Reclaim;
        let locktype = LockedRange::lock_type(is_exclusive, task.wanted.waits && !reclaim);
        let arguments = Lock4args { locktype, reclaim, offset, length, locker };
        Some(self.call(task)?.op(op::LOCK, &arguments).once().finish())
    }

    /// Builds a LOCKU; `None` if nothing is locked.
    fn unlock_request(&self, task: &LockTask) -> Option<CompoundRequest> {
        let locks = self.states.files.get(&task.key.0)?.locks.get(&lock_key(task))?;
        let (offset, length) = LockedRange::on_wire(task.wanted.bytes);
        let locktype = LockedRange::lock_type(true, false);
        let lock_stateid = newest(locks.stateid?);
        let arguments = Locku4args { locktype, seqid: 0, lock_stateid, offset, length };
        Some(self.call(task)?.op(op::LOCKU, &arguments).once().finish())
    }

    fn find_request(&self, task: &LockTask) -> Option<CompoundRequest> {
        let (offset, length) = LockedRange::on_wire(task.wanted.bytes);
        let is_exclusive = task.wanted.lock == RangeLock::Exclusive;
        let name = lock_owner_name(task);
        let owner = StateOwner4 { clientid: 0, owner: Opaque(&name) };
        let locktype = LockedRange::lock_type(is_exclusive, false);
        let arguments = Lockt4args { locktype, offset, length, owner };
        Some(self.call(task)?.op(op::LOCKT, &arguments).finish())
    }

    /// Handles the reply to an operation on locks.
    pub(super) fn lock_ended(&mut self, now: Duration, id: u64, reply: &CompoundReply) {
        let Some(Job::Lock(task)) = self.requests.get(&id).map(|pending| pending.job.clone())
        else {
            return;
        };
        let mut results = reply.results();
        let done = results.status(op::PUTFH);
        if task.kind == LockTaskKind::Find {
            let found = done.and_then(|()| results.status(op::LOCKT));
            let denied = matches!(found, Err(OpFailure::Status(Nfsstat4::Denied)));
            let held = denied.then(|| results.body().ok().map(|denied| held_lock(&denied)));
            let outcome = match (found, held) {
                (Ok(()), _) => Ok(SessionAnswer::HeldLock(None)),
                (_, Some(held)) => Ok(SessionAnswer::HeldLock(held)),
                (Err(failure), None) => Err(lock_failure(failure)),
            };
            return self.answer(id, outcome);
        }
        let operation = if task.kind == LockTaskKind::Unlock { op::LOCKU } else { op::LOCK };
        match done.and_then(|()| results.next::<Stateid4>(operation)) {
            Ok(stateid) => self.lock_done(now, id, &task, stateid),
            Err(failure) => self.lock_failed(now, id, &task, failure),
        }
    }

    fn lock_done(&mut self, now: Duration, id: u64, task: &LockTask, stateid: Stateid4) {
        let is_lock = task.kind != LockTaskKind::Unlock;
        if let Some(state) = self.states.files.get_mut(&task.key.0) {
            let locks = state.locks.entry(lock_key(task)).or_default();
            adopt(&mut locks.stateid, stateid);
            let kind = is_lock.then_some(task.wanted.lock == RangeLock::Exclusive);
            locks.ranges.set(task.wanted.bytes, kind);
            if is_lock {
                locks.hold = task.wanted.open.0;
            }
        }
        let is_forsaken = self.requests.get(&id).is_some_and(|pending| pending.is_forsaken);
        self.end_turn(now, id, task);
        self.answer(id, Ok(SessionAnswer::Lock(LockOutcome::Done)));
        match task.kind {
            // The caller was interrupted and does not know of the lock, so unlock it.
            LockTaskKind::Lock if is_forsaken => {
                let wanted = LockRequest { lock: RangeLock::Free, ..task.wanted };
                let undo =
                    LockTask { kind: LockTaskKind::Unlock, wanted, has_turn: false, ..*task };
                self.insert(PendingRequest::unwritten(Job::Lock(undo), now));
            }
            LockTaskKind::Unlock => self.free_if_unlocked(now, task),
            LockTaskKind::Reclaim => self.reclaim_step_ended(now),
            _ => {}
        }
    }

    /// Frees the lock stateid of an owner whose open the caller has closed.
    fn free_if_unlocked(&mut self, now: Duration, task: &LockTask) {
        if self.states.held(task.wanted.open.0).is_some() {
            return;
        }
        let Some(open) = self.states.open(&task.key) else { return };
        let owner = Arc::clone(&open.owner);
        let Some(state) = self.states.files.get_mut(&task.key.0) else { return };
        if let Some(stateid) = state.locks.remove(&lock_key(task)).and_then(|locks| locks.stateid) {
            self.free_stateid(now, &owner.credential, stateid);
        }
        self.close_idle(now);
    }

    fn lock_failed(&mut self, now: Duration, id: u64, task: &LockTask, failure: OpFailure) {
        self.end_turn(now, id, task);
        let outcome = match failure {
            OpFailure::Status(Nfsstat4::Denied) if task.kind == LockTaskKind::Lock => {
                if task.wanted.waits && self.wait_for_lock(now, id, task) {
                    return;
                }
                Ok(SessionAnswer::Lock(LockOutcome::Denied))
            }
            OpFailure::Status(Nfsstat4::Deadlock) => Ok(SessionAnswer::Lock(LockOutcome::Deadlock)),
            failure => Err(lock_failure(failure)),
        };
        self.answer(id, outcome);
        if task.kind == LockTaskKind::Reclaim {
            self.note(Notice::NotReclaimed(task.key.0, failure));
            self.lose_locks(&task.key);
            self.reclaim_step_ended(now);
        }
    }

    /// Handles an operation on locks that failed without a valid reply.
    pub(super) fn lock_turn_failed(&mut self, now: Duration, task: &LockTask) {
        if let Some(open) = self.states.open_mut(&task.key).filter(|_| task.has_turn) {
            open.is_busy = false;
        }
        self.open_is_free(now, &task.key);
        if task.kind == LockTaskKind::Reclaim {
            self.lose_locks(&task.key);
            self.reclaim_step_ended(now);
        }
    }

    /// Makes a caller wait for a lock; returns false if no caller waits for the request.
    fn wait_for_lock(&mut self, now: Duration, id: u64, task: &LockTask) -> bool {
        let Some(pending) = self.requests.get(&id).filter(|pending| pending.has_caller) else {
            return false;
        };
        let notifies = self.states.open(&task.key).is_some_and(|open| open.notifies_locks);
        let at = now + if notifies { ASK_AGAIN } else { pause(pending.delays) };
        self.delay(at, id, RequestStage::Delayed(at));
        self.lock_waits.insert(id);
        true
    }

    /// Handles CB_NOTIFY_LOCK: requests the lock again now.
    pub(super) fn lock_may_be_free(&mut self, file: &[u8], owner: &[u8]) {
        let is_it = |task: &LockTask| task.key.0.bytes() == file && lock_owner_name(task) == *owner;
        let waits: Vec<u64> = self.lock_waits.iter().copied().collect();
        for id in waits {
            let Some(pending) = self.requests.get(&id) else {
                self.lock_waits.remove(&id);
                continue;
            };
            let Job::Lock(task) = &pending.job else { continue };
            if let (true, RequestStage::Delayed(at)) = (is_it(task), pending.stage) {
                self.delayed.remove(at, id);
                self.send_again(id);
            }
        }
    }

    /// Marks the locks of an open as lost, and with them the opens of callers.
    pub(super) fn lose_locks(&mut self, key: &OpenKey) {
        self.states.forget_locks(key);
        self.lose_open(key);
    }

    fn lock_lost(&mut self, id: u64, task: &LockTask) {
        let is_unlock = task.kind == LockTaskKind::Unlock;
        let done = Ok(SessionAnswer::Lock(LockOutcome::Done));
        self.answer(id, if is_unlock { done } else { Err(CallFailure::StateLost) });
    }
}

/// The stateid with seqid 0, which stands for the current one (RFC 8881, 8.2.2). This is safe
/// because operations on one open are sent one at a time.
const fn newest(stateid: Stateid4) -> Stateid4 {
    Stateid4 { seqid: 0, ..stateid }
}

/// The key of the lock-owner of a task.
pub(super) const fn lock_key(task: &LockTask) -> (u32, u64) {
    (task.key.1, task.wanted.owner.0)
}

/// The name by which the server knows a lock-owner.
fn lock_owner_name(task: &LockTask) -> [u8; LOCK_OWNER_BYTES] {
    let mut name = [0; LOCK_OWNER_BYTES];
    let (open, lock) = name.split_at_mut(4);
    open.copy_from_slice(&task.key.1.to_be_bytes());
    lock.copy_from_slice(&task.wanted.owner.0.to_be_bytes());
    name
}

const fn held_lock(denied: &Lock4denied<'_>) -> HeldLock {
    use comity_proto::nfs4::NfsLockType4::{Write, WriteWait};
    HeldLock {
        bytes: LockedRange::of_wire(denied.offset, denied.length),
        is_exclusive: matches!(denied.locktype, Write | WriteWait),
    }
}

const fn lock_failure(failure: OpFailure) -> CallFailure {
    match failure {
        OpFailure::Status(status) => CallFailure::Status(status),
        OpFailure::Malformed(reason) => {
            CallFailure::Refused(crate::rpc::RpcRefusal::Malformed(reason))
        }
    }
}

//! Opens (RFC 8881, 18.16 and 18.2): those of callers, and those that the client makes for callers
//! who read and write by handle.

use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{
    Close4args, Nfsstat4, OpenClaim4, OpenDelegationType4, Openflag4, Stateid4, operation as op,
};
use comity_vfs::DelegationKind;

use super::file_states::OpenKey;
use super::job::{Job, OpenTask, TaskClaim};
use super::machine::ClientMachine;
use super::pending::PendingRequest;
use super::phase::ClientPhase;
use super::prepare::Readiness;
use super::request::{OpenAnswer, SessionAnswer};
use crate::compound::{
    CompoundCall, CompoundReply, CompoundRequest, OpFailure, OpenArguments, OpenResult, StateUse,
    read_open, share_bits,
};
use crate::machine::CallFailure;

/// An unused open is closed after this time, and a refused one is tried again.
const IDLE: Duration = Duration::from_secs(2);

impl ClientMachine {
    /// Opens a file for a caller that reads or writes it without having opened it.
    pub(super) fn open_on_our_own(&mut self, now: Duration, wanted: &StateUse) {
        let StateUse { file, owner, access, .. } = wanted;
        let task = OpenTask::own(Arc::clone(owner), *file, *access, TaskClaim::Use);
        self.begin_open(now, task);
    }

    /// Sends an OPEN of the client itself.
    pub(super) fn begin_open(&mut self, now: Duration, task: OpenTask) -> u64 {
        let request = self.open_request(&task);
        self.insert(PendingRequest::in_session(request, Job::Open(task), now))
    }

    fn open_request(&self, task: &OpenTask) -> CompoundRequest {
        let delegation = task.file.and_then(|file| self.states.delegation(&file));
        let claim = match task.claim {
            TaskClaim::Caller | TaskClaim::Use => OpenClaim4::Fh,
            TaskClaim::Delegation => {
                let stateid = delegation.map_or(Stateid4::ANONYMOUS, |held| held.stateid);
                OpenClaim4::DelegCurFh(stateid)
            }
            TaskClaim::Previous(held) => OpenClaim4::Previous(match held {
                None => OpenDelegationType4::None,
                Some(DelegationKind::Read) => OpenDelegationType4::Read,
                Some(DelegationKind::Write) => OpenDelegationType4::Write,
            }),
        };
        let arguments = OpenArguments {
            owner: task.owner.id,
            access: share_bits(task.access),
            wants_delegation: self.settings.wants_delegations && delegation.is_none(),
            how: Openflag4::NoCreate,
            claim,
        };
        let call = CompoundCall::new(self.minor, &task.owner.credential);
        let call = task.file.iter().fold(call, |call, file| call.on(file));
        call.op(op::OPEN, &arguments).once().finish()
    }

    /// Prepares an OPEN once no other operation on the open is under way. If a delegation allows
    /// the open, no call is needed.
    pub(super) fn prepare_open(&mut self, now: Duration, id: u64, task: &OpenTask) -> Readiness {
        if task.has_turn && task.claim != TaskClaim::Caller {
            // The stateid of the delegation may have changed since the request was built.
            let request = self.open_request(task);
            self.write(id, request);
        }
        let Some(file) = task.file.filter(|_| !task.has_turn) else { return Readiness::Ready };
        let key = (file, task.owner.id);
        if self.may_open_here(now, &key, task) {
            self.opened_here(id, key, task, None);
            return Readiness::Over;
        }
        let open = self.states.open_of(&file, &task.owner);
        if open.is_busy {
            return Readiness::Blocked(key);
        }
        open.is_busy = true;
        if let Some(Job::Open(task)) = self.requests.get_mut(&id).map(|pending| &mut pending.job) {
            task.has_turn = true;
        }
        Readiness::Ready
    }

    /// Returns whether a delegation allows this owner to open the file locally.
    fn may_open_here(&self, now: Duration, key: &OpenKey, task: &OpenTask) -> bool {
        let access = share_bits(task.access);
        let gives =
            self.states.delegation(&key.0).is_some_and(|held| held.is_good() && held.gives(access));
        gives
            && self.is_lease_certain(now)
            && self.states.open(key).is_some_and(|open| open.judged & access == access)
    }

    /// Counts an open of a caller, and answers the caller.
    fn opened_here(
        &mut self,
        id: u64,
        key: OpenKey,
        task: &OpenTask,
        reply: Option<CompoundReply>,
    ) {
        let has_caller = self.requests.get(&id).is_some_and(|pending| pending.has_caller);
        if !has_caller {
            self.answer(id, Err(CallFailure::Ended));
            return;
        }
        let open = self.states.hold(key, task.access);
        let delegation = self.states.delegation(&key.0).filter(|held| held.is_good());
        let delegation = delegation.map(|held| held.kind);
        self.answer(id, Ok(SessionAnswer::Opened(OpenAnswer { open, delegation, reply })));
    }

    /// Handles the reply to an OPEN.
    pub(super) fn open_ended(&mut self, now: Duration, id: u64, reply: CompoundReply) {
        let Some(Job::Open(task)) = self.requests.get(&id).map(|pending| pending.job.clone())
        else {
            return;
        };
        match read_open(&reply, task.file.is_none()) {
            Ok(opened) => self.open_granted(now, (id, &task), &opened, reply),
            Err(failure) => self.open_refused(now, (id, &task), failure, reply),
        }
    }

    fn open_granted(
        &mut self,
        now: Duration,
        (id, task): (u64, &OpenTask),
        opened: &OpenResult,
        reply: CompoundReply,
    ) {
        let Some(file) = task.file.or(opened.file) else {
            // The handle is too long to be stored, so the file cannot be used.
            return self.answer(id, Ok(SessionAnswer::Reply(reply)));
        };
        let key = (file, task.owner.id);
        let access = share_bits(task.access);
        let open = self.states.open_of(&file, &task.owner);
        adopt(&mut open.stateid, opened.stateid);
        open.access |= access;
        open.judged |= access & !opened.denied;
        open.refused &= !access;
        open.used = now;
        open.notifies_locks |= opened.notifies_locks;
        if task.has_turn {
            open.is_busy = false;
        }
        let is_reclaimed = matches!(task.claim, TaskClaim::Previous(Some(_)));
        if let Some((stateid, kind, is_recalled)) = opened.delegation {
            let about = (is_recalled, is_reclaimed);
            self.delegated(now, (file, &task.owner), (stateid, kind), about);
        } else if is_reclaimed {
            self.lose_delegation(&file);
        }
        match task.claim {
            TaskClaim::Caller => self.opened_here(id, key, task, Some(reply)),
            _ => self.answer(id, Ok(SessionAnswer::Reply(reply))),
        }
        self.states.watch(now + IDLE, key);
        self.open_is_free(now, &key);
        self.go_on_reclaiming(now, &key);
    }

    fn open_refused(
        &mut self,
        now: Duration,
        (id, task): (u64, &OpenTask),
        failure: OpFailure,
        reply: CompoundReply,
    ) {
        let key = task.file.map(|file| (file, task.owner.id));
        if let Some(open) = key.as_ref().and_then(|key| self.states.open_mut(key)) {
            if task.has_turn {
                open.is_busy = false;
            }
            if task.claim == TaskClaim::Use {
                // The READ or WRITE is then sent with the anonymous stateid, and the server
                // decides.
                open.refused |= share_bits(task.access);
            }
        }
        key.into_iter().for_each(|key| self.states.watch(now + IDLE, key));
        match (task.claim, key) {
            (TaskClaim::Previous(_), Some(key)) => self.not_reclaimed(now, &key, failure),
            (TaskClaim::Delegation, Some(key)) => self.not_moved(&key, failure),
            _ => {}
        }
        self.answer(id, Ok(SessionAnswer::Reply(reply)));
        if let Some(key) = key {
            self.open_is_free(now, &key);
            self.states.tidy(&key.0);
        }
    }

    /// Handles an OPEN without a valid reply.
    pub(super) fn open_failed(&mut self, now: Duration, task: &OpenTask) {
        let Some(key) = task.file.map(|file| (file, task.owner.id)) else { return };
        if let Some(open) = self.states.open_mut(&key).filter(|_| task.has_turn) {
            open.is_busy = false;
            open.refused |= share_bits(task.access);
        }
        self.states.watch(now + IDLE, key);
        self.open_is_free(now, &key);
        if matches!(task.claim, TaskClaim::Previous(_)) {
            self.reclaim_step_ended(now);
        }
    }

    /// Closes an open of a caller.
    pub(super) fn close(&mut self, now: Duration, open: u64) -> u64 {
        let Some((hold, was_lost)) = self.states.let_go(open) else {
            return self.answer_at_once(Ok(SessionAnswer::Done));
        };
        self.unlock_all(now, open, &hold.key);
        let is_unused = self.states.open(&hold.key).is_some_and(|open| open.held() == 0);
        if is_unused {
            if let Some(open) = self.states.open_mut(&hold.key) {
                open.used = Duration::ZERO;
            }
            self.states.watch(now, hold.key);
        }
        let lost = Err(CallFailure::StateLost);
        let id = self.answer_at_once(if was_lost { lost } else { Ok(SessionAnswer::Done) });
        self.close_idle(now);
        id
    }

    /// Closes opens that have been idle for [`IDLE`].
    pub(super) fn close_idle(&mut self, now: Duration) {
        if self.phase != ClientPhase::Ready {
            return;
        }
        while let Some(key) = self.states.next_idle(now) {
            self.close_if_idle(now, key);
        }
    }

    fn close_if_idle(&mut self, now: Duration, key: OpenKey) {
        let Some(open) = self.states.open_mut(&key) else { return };
        if open.held() != 0 || open.is_busy {
            return;
        }
        let idle_from = open.used + IDLE;
        if idle_from > now && open.used != Duration::ZERO {
            return self.states.watch(idle_from, key);
        }
        open.refused = 0;
        if open.stateid.is_some() {
            open.is_busy = true;
            self.insert(PendingRequest::unwritten(Job::Close(key, Stateid4::INVALID), now));
        } else {
            self.states.tidy(&key.0);
        }
    }

    /// Closes an open that no caller has, without waiting until it was idle for [`IDLE`].
    pub(super) fn expire_open(&mut self, now: Duration, key: OpenKey) {
        if let Some(open) = self.states.open_mut(&key) {
            open.used = Duration::ZERO;
        }
        self.close_if_idle(now, key);
    }

    /// Builds a CLOSE.
    pub(super) fn prepare_close(&mut self, now: Duration, id: u64, key: &OpenKey) -> Readiness {
        let open = self.states.open(key);
        let Some((open_stateid, owner)) =
            open.and_then(|open| Some((open.stateid?, Arc::clone(&open.owner))))
        else {
            self.closed(now, id, key);
            return Readiness::Over;
        };
        let arguments = Close4args { seqid: 0, open_stateid };
        let call = CompoundCall::new(self.minor, &owner.credential).on(&key.0);
        self.write(id, call.op(op::CLOSE, &arguments).once().finish());
        if let Some(pending) = self.requests.get_mut(&id) {
            pending.job = Job::Close(*key, open_stateid);
        }
        Readiness::Ready
    }

    /// Handles the reply to a CLOSE. An error means that the server knows no such open, or that the
    /// file was opened again meanwhile.
    pub(super) fn close_ended(
        &mut self,
        now: Duration,
        id: u64,
        (key, closed): (&OpenKey, Stateid4),
        status: Nfsstat4,
    ) {
        // An OPEN by name may have been sent after the CLOSE and answered before it.
        let is_it = |open: &Stateid4| open.other == closed.other;
        if status == Nfsstat4::OldStateid {
            self.states.watch(now, *key);
        } else if let Some(open) = self.states.open_mut(key)
            && open.stateid.as_ref().is_some_and(is_it)
        {
            open.stateid = None;
            open.access = 0;
            self.states.forget_locks(key);
        }
        self.closed(now, id, key);
        self.close_idle(now);
    }

    pub(super) fn closed(&mut self, now: Duration, id: u64, key: &OpenKey) {
        self.remove(id);
        if let Some(open) = self.states.open_mut(key) {
            open.is_busy = false;
        }
        self.open_is_free(now, key);
        self.states.tidy(&key.0);
    }

    /// Sets the COMPOUND of a request.
    pub(super) fn write(&mut self, id: u64, request: CompoundRequest) {
        if let Some(pending) = self.requests.get_mut(&id) {
            self.bytes -= pending.record.len();
            pending.write(request);
            self.bytes += pending.record.len();
        }
    }
}

/// Stores the stateid that an operation returned, unless a newer one of the same state is stored.
pub(super) fn adopt(known: &mut Option<Stateid4>, found: Stateid4) {
    let is_older = known.is_some_and(|known| {
        known.other == found.other && (found.seqid.wrapping_sub(known.seqid) as i32) < 0
    });
    if !is_older {
        *known = Some(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stateid_is_replaced_by_a_newer_one_or_another() {
        let stateid = |seqid, byte| Stateid4 { seqid, other: [byte; 12] };
        let mut known = None;
        for (found, expected) in [
            (stateid(5, 1), stateid(5, 1)),
            (stateid(4, 1), stateid(5, 1)),
            (stateid(6, 1), stateid(6, 1)),
            (stateid(1, 2), stateid(1, 2)),
            (stateid(u32::MAX, 2), stateid(1, 2)),
        ] {
            adopt(&mut known, found);
            assert_eq!(known, Some(expected));
        }
    }
}

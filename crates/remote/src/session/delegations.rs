//! Delegations (RFC 8881, 10.4): they come with an OPEN, allow local opens, and are returned after
//! a recall.

use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{Nfsstat4, Stateid4, operation as op, share};
use comity_vfs::{DelegationKind, DelegationNumber, OpenAccess};

use super::file_states::{HeldDelegation, OpenKey};
use super::job::{Job, OpenTask, TaskClaim};
use super::machine::ClientMachine;
use super::pending::PendingRequest;
use super::phase::ClientPhase;
use super::prepare::Readiness;
use super::request::SessionAnswer;
use crate::compound::{CompoundCall, OpFailure, OpenOwner};
use crate::limits::DELEGATIONS_MAX;
use crate::machine::StateEvent;
use crate::machine::{MachineOutput, Notice};
use crate::server_handle::ServerHandle;

impl ClientMachine {
    /// Records a delegation that was granted or reclaimed.
    pub(super) fn delegated(
        &mut self,
        now: Duration,
        (file, owner): (ServerHandle, &Arc<OpenOwner>),
        (stateid, kind): (Stateid4, DelegationKind),
        (is_recalled, is_reclaimed): (bool, bool),
    ) {
        if let Some(held) = self.states.delegation_mut(&file) {
            // It was reclaimed, or granted again with another open. If `other` of one that was not
            // reclaimed differs, it is a new delegation: the earlier one may have ended without
            // notice.
            let is_same = is_reclaimed || held.stateid.other == stateid.other;
            (held.stateid, held.kind, held.owner) = (stateid, kind, Arc::clone(owner));
            held.known = None;
            if !is_same {
                self.states.number_delegation(&file);
            }
        } else {
            let held = HeldDelegation::new(stateid, kind, Arc::clone(owner));
            self.states.hold_delegation(file, held);
        }
        if is_recalled {
            self.recalled(now, &file, false);
        }
        if self.states.delegations > DELEGATIONS_MAX {
            self.keep_few(now, DELEGATIONS_MAX);
        }
    }

    /// Returns whether the lease is still valid at the server, counted from the last renewal.
    pub(super) fn is_lease_certain(&self, now: Duration) -> bool {
        self.phase == ClientPhase::Ready && self.lease.renewed + self.lease.length > now
    }

    /// The delegation of a file, if it may be used now.
    pub(crate) fn delegation(&self, now: Duration, file: &ServerHandle) -> Option<DelegationKind> {
        let is_of_file = |held: &&HeldDelegation| held.is_good() && held.grant.is_none();
        let held = self.states.delegation(file).filter(is_of_file)?;
        self.is_lease_certain(now).then_some(held.kind)
    }

    /// The number of the delegation of a file, as long as it keeps other clients from changing the
    /// file: a recalled one until its return begins.
    pub(crate) fn file_grant(
        &self,
        now: Duration,
        file: &ServerHandle,
    ) -> Option<DelegationNumber> {
        let is_of_file = |held: &&HeldDelegation| !held.is_returning && held.grant.is_none();
        let held = self.states.delegation(file).filter(is_of_file)?;
        self.is_lease_certain(now).then_some(DelegationNumber(held.number))
    }

    /// Notes the size of a delegated file whose modified data is still cached here; `None` once all
    /// is written.
    pub(crate) fn note_unwritten(&mut self, file: &ServerHandle, size: Option<u64>) {
        let Some(held) = self.states.delegation_mut(file) else { return };
        let before = std::mem::replace(&mut held.unwritten, size);
        if let (None, Some(written), Some(known)) = (size, before, held.known.as_mut()) {
            known.0 = written;
        }
    }

    /// Forgets which accesses of a file the server has allowed, because this client has changed its
    /// mode or owner. The next opens ask the server even under a delegation.
    pub(crate) fn forget_rights(&mut self, file: &ServerHandle) {
        self.states.forget_judged(file);
    }

    /// Notes size and change attribute of a delegated file at the server. The change attribute
    /// stays that of the grant: if CB_GETATTR returns any other value, the server takes the file as
    /// modified (RFC 8881, 10.4.3).
    pub(crate) fn note_known(&mut self, file: &ServerHandle, size: u64, change: u64) {
        if let Some(held) = self.states.delegation_mut(file) {
            let of_grant = held.known.map_or(change, |(_, of_grant)| of_grant);
            held.known = Some((size, of_grant));
        }
    }

    /// Handles a recall. With `hands_up_recalls` the user of the session is notified and returns
    /// the delegation after writing its data; otherwise it is returned at once.
    pub(super) fn recalled(&mut self, now: Duration, file: &ServerHandle, is_truncated: bool) {
        let Some(held) = self.states.delegation_mut(file) else { return };
        if held.recalled.is_some() || held.is_returning {
            return;
        }
        held.recalled = Some(now);
        if self.settings.hands_up_recalls {
            self.tell(StateEvent::Recalled { file: *file, is_truncated });
            let number = self.next_request;
            self.overdue.insert((now + self.lease.length / 2, number), *file);
        } else {
            self.begin_return(now, file);
        }
    }

    /// Emits an event, if the user of the session wants events.
    fn tell(&mut self, event: StateEvent) {
        if self.settings.hands_up_recalls {
            self.outputs.push_back(MachineOutput::Event(event));
        }
    }

    /// The time at which the next recalled delegation is returned even if data is still unwritten.
    pub(super) fn overdue_at(&self) -> Option<Duration> {
        self.overdue.first_key_value().map(|((at, _), _)| *at)
    }

    /// Returns recalled delegations that are overdue: the server would soon revoke them. Data that
    /// the user of the session has not written yet must not be written over later changes.
    pub(super) fn return_overdue(&mut self, now: Duration) {
        while let Some(((at, _), _)) = self.overdue.first_key_value()
            && *at <= now
            && let Some((_, file)) = self.overdue.pop_first()
        {
            let is_due = |held: &HeldDelegation| held.recalled.is_some() && !held.is_returning;
            if self.states.delegation(&file).is_some_and(is_due) {
                self.note(Notice::ReturnedLate(file));
                self.tell(StateEvent::DelegationLost(file));
                self.begin_return(now, &file);
            }
        }
    }

    /// Returns a delegation at the request of a caller, who waits for the end.
    pub(super) fn return_for(&mut self, now: Duration, file: &ServerHandle) -> u64 {
        if self.states.delegation(file).is_none() {
            return self.answer_at_once(Ok(SessionAnswer::Done));
        }
        let id = self.insert_waiter(now);
        if let Some(held) = self.states.delegation_mut(file) {
            held.waiters.push(id);
        }
        self.begin_return(now, file);
        id
    }

    /// Returns all but `most` delegations, the least recently used first.
    pub(super) fn keep_few(&mut self, now: Duration, most: usize) {
        let good = self.states.files.iter().filter_map(|(file, state)| {
            let held = state.delegation.as_ref().filter(|held| held.is_good())?;
            Some((held.used, *file))
        });
        let mut good: Vec<(u64, ServerHandle)> = good.collect();
        let excess = good.len().saturating_sub(most);
        if excess > 0 {
            good.sort_unstable_by_key(|(used, _)| *used);
            good.truncate(excess);
            good.iter().for_each(|(_, file)| self.recalled(now, file, false));
        }
    }

    pub(super) fn begin_return(&mut self, now: Duration, file: &ServerHandle) {
        let Some(held) = self.states.delegation_mut(file) else { return };
        if !std::mem::replace(&mut held.is_returning, true) {
            self.go_on_returning(now, file);
        }
    }

    /// Continues the return of a delegation: first, local opens under it are made at the server.
    pub(super) fn go_on_returning(&mut self, now: Duration, file: &ServerHandle) {
        let Some(state) = self.states.files.get_mut(file) else { return };
        let Some(held) = state.delegation.as_mut() else { return };
        if !held.is_returning || held.is_sent {
            return;
        }
        let mut missing = Vec::new();
        let mut is_busy = false;
        for (number, open) in &mut state.opens {
            let wanted = open.held();
            if open.is_busy {
                is_busy = true;
            } else if wanted != 0 && !open.is_lost && !open.is_open_for(wanted) {
                open.is_busy = true;
                missing.push((*number, Arc::clone(&open.owner), access(wanted)));
            }
        }
        if missing.is_empty() && !is_busy {
            held.is_sent = true;
            return self.send_return(now, file);
        }
        for (_, owner, access) in missing {
            self.begin_open(now, OpenTask::own(owner, *file, access, TaskClaim::Delegation));
        }
    }

    fn send_return(&mut self, now: Duration, file: &ServerHandle) {
        self.insert(PendingRequest::unwritten(Job::Return(*file), now));
    }

    /// Builds the DELEGRETURN.
    pub(super) fn prepare_return(&mut self, id: u64, file: &ServerHandle) -> Readiness {
        let Some(held) = self.states.delegation(file).filter(|held| held.is_sent) else {
            self.remove(id);
            return Readiness::Over;
        };
        let call = CompoundCall::new(self.minor, &held.owner.credential).on(file);
        let request = call.op(op::DELEGRETURN, &held.stateid).once().finish();
        self.write(id, request);
        Readiness::Ready
    }

    /// Handles the reply to a DELEGRETURN. After a failure the delegation does not exist either.
    pub(super) fn return_ended(&mut self, now: Duration, id: u64, file: &ServerHandle) {
        self.remove(id);
        self.forget_delegation(file);
        self.close_idle(now);
    }

    /// Drops a delegation, and answers the callers that wait for its end.
    fn forget_delegation(&mut self, file: &ServerHandle) {
        let Some(held) = self.states.take_delegation(file) else { return };
        for waiter in held.waiters {
            self.answer(waiter, Ok(SessionAnswer::Done));
        }
        self.states.tidy(file);
    }

    /// Handles a delegation that has ended without being returned.
    pub(super) fn lose_delegation(&mut self, file: &ServerHandle) {
        let was_expected =
            self.states.delegation(file).is_some_and(|held| held.is_sent || held.is_returning);
        if self.states.delegation(file).is_none() {
            return;
        }
        self.forget_delegation(file);
        if !was_expected {
            self.note(Notice::DelegationLost(*file));
            self.tell(StateEvent::DelegationLost(*file));
        }
    }

    /// Handles a local open that could not be made at the server while its delegation was returned.
    pub(super) fn not_moved(&mut self, key: &OpenKey, failure: OpFailure) {
        if !matches!(failure, OpFailure::Status(Nfsstat4::Delay | Nfsstat4::Grace)) {
            self.lose_open(key);
        }
    }

    /// Marks the opens that callers have of a file as lost.
    pub(super) fn lose_open(&mut self, key: &OpenKey) {
        let Some(open) = self.states.open_mut(key) else { return };
        (open.stateid, open.access) = (None, 0);
        if open.held() == 0 || std::mem::replace(&mut open.is_lost, true) {
            return;
        }
        self.note(Notice::StateLost(key.0));
        self.tell(StateEvent::StateLost(key.0));
    }
}

/// The access of these share bits.
pub(super) const fn access(bits: u32) -> OpenAccess {
    match bits {
        share::READ => OpenAccess::Read,
        share::WRITE => OpenAccess::Write,
        _ => OpenAccess::Both,
    }
}

//! Recovery after the server has forgotten the client (RFC 8881, 8.4.2): opens, locks and
//! delegations are reclaimed, up to [`AT_ONCE`] at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::share;
use comity_vfs::{DelegationKind, LockOwner, LockRequest, OpenId, RangeLock};

use super::delegations::access;
use super::faults::StateTest;
use super::file_states::{FileState, HeldDelegation, OpenKey};
use super::job::{Job, LockTask, LockTaskKind, OpenTask, TaskClaim};
use super::machine::ClientMachine;
use super::pending::PendingRequest;
use super::phase::ClientPhase;
use crate::compound::OpFailure;
use crate::machine::Notice;
use crate::server_handle::ServerHandle;

/// Most reclaims that are under way at once.
const AT_ONCE: usize = 32;

/// State that is still to be reclaimed.
#[derive(Debug, Default)]
pub(super) struct ReclaimQueue {
    steps: VecDeque<ReclaimStep>,
    under_way: usize,
    /// Number of opens, locks and delegations to reclaim at the start.
    total: usize,
}

#[derive(Debug)]
enum ReclaimStep {
    Open(OpenTask),
    Lock(LockTask),
}

impl ClientMachine {
    /// Begins to reclaim the client's state.
    pub(super) fn begin_reclaim(&mut self, now: Duration) {
        self.phase = ClientPhase::Reclaiming;
        self.reclaims = ReclaimQueue::default();
        self.reset_turns();
        let files: Vec<ServerHandle> = self.states.files.keys().copied().collect();
        for file in files {
            self.plan_reclaim(&file);
        }
        self.reclaims.total = self.reclaims.steps.len();
        self.reclaim_more(now);
    }

    /// Restarts operations on the lost state, and drops those that no caller requested.
    fn reset_turns(&mut self) {
        let keys: Vec<OpenKey> = self.blocked.keys().copied().collect();
        keys.iter().for_each(|key| self.unblock(key));
        let mut dropped = Vec::new();
        for (id, pending) in &mut self.requests {
            match &mut pending.job {
                Job::Open(task) if task.claim == TaskClaim::Caller => task.has_turn = false,
                Job::Lock(task) if task.kind != LockTaskKind::Reclaim => task.has_turn = false,
                Job::Open(_) | Job::Lock(_) | Job::Close(..) | Job::Return(_) => dropped.push(*id),
                Job::Test(_) | Job::Free => dropped.push(*id),
                _ => {}
            }
        }
        for id in dropped {
            self.calls.forget(id);
            self.remove(id);
        }
        self.testing = StateTest::default();
        let opens = self.states.files.values_mut().flat_map(|state| state.opens.values_mut());
        opens.for_each(|open| open.is_busy = false);
    }

    /// Plans the reclaims of one file. State without an open of a caller is dropped: the file is
    /// opened again when needed.
    fn plan_reclaim(&mut self, file: &ServerHandle) {
        let Some(state) = self.states.files.get_mut(file) else { return };
        let mut delegation = match &state.delegation {
            Some(held) if !held.is_returning && held.grant.is_none() => {
                Some((Arc::clone(&held.owner), held.kind))
            }
            _ => None,
        };
        for open in state.opens.values_mut() {
            (open.stateid, open.access, open.refused) = (None, 0, 0);
        }
        let holds = &self.states.holds;
        // Locks whose caller has closed its open count as unlocked, even if the server has not
        // confirmed it.
        state.locks.retain(|_, locks| holds.contains_key(&locks.hold));
        for locks in state.locks.values_mut() {
            locks.stateid = None;
        }
        let steps = open_steps(file, state, &mut delegation);
        self.reclaims.steps.extend(steps.into_iter().map(ReclaimStep::Open));
        // Delegations of directories are not reclaimed (RFC 8881, 10.9.5).
        let is_over = |held: &HeldDelegation| held.is_returning || held.grant.is_some();
        if self.states.delegation(file).is_some_and(is_over) {
            self.lose_delegation(file);
        }
        self.states.tidy(file);
    }

    fn reclaim_more(&mut self, now: Duration) {
        while self.reclaims.under_way < AT_ONCE
            && let Some(step) = self.reclaims.steps.pop_front()
        {
            self.reclaims.under_way += 1;
            match step {
                ReclaimStep::Open(task) => {
                    self.begin_open(now, task);
                }
                ReclaimStep::Lock(task) => {
                    self.insert(PendingRequest::unwritten(Job::Lock(task), now));
                }
            }
        }
        if self.reclaims.under_way == 0 && self.phase == ClientPhase::Reclaiming {
            if self.reclaims.total > 0 {
                self.note(Notice::Reclaimed(self.reclaims.total));
            }
            self.complete_reclaim(now);
        }
    }

    /// Continues after an open was reclaimed: its locks are next.
    pub(super) fn go_on_reclaiming(&mut self, now: Duration, key: &OpenKey) {
        if self.phase != ClientPhase::Reclaiming {
            return;
        }
        if let Some(state) = self.states.files.get(&key.0) {
            for task in lock_steps(key, state) {
                self.reclaims.steps.push_front(ReclaimStep::Lock(task));
            }
        }
        self.reclaim_step_ended(now);
    }

    /// Notes that a reclaim has ended, and begins others.
    pub(super) fn reclaim_step_ended(&mut self, now: Duration) {
        if self.phase == ClientPhase::Reclaiming {
            self.reclaims.under_way = self.reclaims.under_way.saturating_sub(1);
            self.reclaim_more(now);
        }
    }

    /// Handles a failed reclaim of an open. The open is made again when needed; its locks and the
    /// delegation are lost.
    pub(super) fn not_reclaimed(&mut self, now: Duration, key: &OpenKey, failure: OpFailure) {
        self.note(Notice::NotReclaimed(key.0, failure));
        let locked = |state: &FileState| {
            state
                .locks
                .iter()
                .any(|((owner, _), locks)| *owner == key.1 && !locks.ranges.is_empty())
        };
        let is_delegated =
            self.states.delegation(&key.0).is_some_and(|held| held.owner.id == key.1);
        if self.states.files.get(&key.0).is_some_and(locked) {
            self.lose_locks(key);
        }
        if is_delegated {
            self.lose_delegation(&key.0);
        }
        self.reclaim_step_ended(now);
    }
}

/// The opens of a file to reclaim; one of them also reclaims the delegation.
fn open_steps(
    file: &ServerHandle,
    state: &FileState,
    delegation: &mut Option<(Arc<crate::compound::OpenOwner>, DelegationKind)>,
) -> Vec<OpenTask> {
    let mut steps = Vec::new();
    for open in state.opens.values().filter(|open| open.held() != 0 && !open.is_lost) {
        let is_holder = |held: &mut (Arc<_>, _)| held.0 == open.owner;
        let kind = delegation.take_if(is_holder).map(|(_, kind)| kind);
        let claim = TaskClaim::Previous(kind);
        steps.push(OpenTask::own(Arc::clone(&open.owner), *file, access(open.held()), claim));
    }
    if let Some((owner, kind)) = delegation.take() {
        let bits = if kind == DelegationKind::Read { share::READ } else { share::BOTH };
        let claim = TaskClaim::Previous(Some(kind));
        steps.push(OpenTask::own(owner, *file, access(bits), claim));
    }
    steps
}

/// The locks of an open to reclaim.
fn lock_steps(key: &OpenKey, state: &FileState) -> Vec<LockTask> {
    let of_open = state.locks.iter().filter(|((owner, _), _)| *owner == key.1);
    of_open
        .flat_map(|((_, owner), locks)| {
            locks.ranges.iter().map(move |range| LockTask {
                kind: LockTaskKind::Reclaim,
                key: *key,
                wanted: LockRequest {
                    open: OpenId(locks.hold),
                    owner: LockOwner(*owner),
                    bytes: (range.first, range.last),
                    lock: if range.is_exclusive { RangeLock::Exclusive } else { RangeLock::Shared },
                    waits: false,
                },
                has_turn: true,
            })
        })
        .collect()
}

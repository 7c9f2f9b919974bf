//! State that the server does not know or has revoked (RFC 8881, 8.4, 9.8 and 10.2.1).

use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{
    Nfsstat4, Stateid4, TestStateid4args, TestStateid4resok, operation as op, seq4_status,
};
use comity_xdr::Counted;

use super::file_states::OpenKey;
use super::job::Job;
use super::locks::lock_key;
use super::machine::ClientMachine;
use super::pending::{PendingRequest, RequestForm};
use crate::compound::{CompoundCall, CompoundReply};
use crate::machine::Notice;
use crate::server_handle::ServerHandle;

/// Most times that a request is retried because the server did not know its state.
const FAULTS_MAX: u32 = 4;

/// Most stateids in one TEST_STATEID.
const TESTED_MAX: usize = 128;

/// Pause between two searches for revoked state: the server sets its flags until all revoked state
/// is freed.
const TEST_PAUSE: Duration = Duration::from_secs(5);

/// The flags that report revoked state.
const REVOKED: u32 = seq4_status::EXPIRED_ALL_STATE_REVOKED
    | seq4_status::EXPIRED_SOME_STATE_REVOKED
    | seq4_status::ADMIN_STATE_REVOKED
    | seq4_status::RECALLABLE_STATE_REVOKED;

/// The search for revoked state, by TEST_STATEID.
#[derive(Debug, Default)]
pub(super) struct StateTest {
    under_way: usize,
    not_before: Duration,
}

/// Returns whether a status means that a stateid is invalid.
pub(super) const fn is_fault(status: Nfsstat4) -> bool {
    matches!(
        status,
        Nfsstat4::BadStateid
            | Nfsstat4::OldStateid
            | Nfsstat4::StaleStateid
            | Nfsstat4::Expired
            | Nfsstat4::AdminRevoked
            | Nfsstat4::DelegRevoked
            | Nfsstat4::OpenMode
    )
}

impl ClientMachine {
    /// Handles a request whose state the server does not know: retries it with other state, a few
    /// times.
    pub(super) fn fault(&mut self, now: Duration, id: u64, reply: CompoundReply) {
        let Some(pending) = self.requests.get_mut(&id) else { return };
        pending.faults += 1;
        if pending.faults > FAULTS_MAX {
            return self.finish(now, id, reply);
        }
        let shown: Vec<(OpenKey, Stateid4)> = match (&pending.job, &pending.form) {
            (Job::Verb, RequestForm::InSession(form)) => {
                let place = |place: &crate::compound::StatePlace| {
                    ((place.state.file, place.state.owner.id), place.shown)
                };
                form.places.iter().map(place).collect()
            }
            (Job::Lock(task), _) => {
                let (key, lock) = (task.key, lock_key(task));
                self.stateids_of_lock(&key, lock).into_iter().map(|it| (key, it)).collect()
            }
            _ => return self.finish(now, id, reply),
        };
        for (key, stateid) in shown {
            self.invalidate(now, &key.0, stateid, reply.status);
        }
        self.send_again(id);
    }

    fn stateids_of_lock(&self, key: &OpenKey, lock: (u32, u64)) -> Vec<Stateid4> {
        let state = self.states.files.get(&key.0);
        let lock = state.and_then(|state| state.locks.get(&lock)?.stateid);
        let open = self.states.open(key).and_then(|open| open.stateid);
        lock.or(open).into_iter().collect()
    }

    /// Drops a stateid of a file that is no longer valid.
    pub(super) fn invalidate(
        &mut self,
        now: Duration,
        file: &ServerHandle,
        stateid: Stateid4,
        status: Nfsstat4,
    ) {
        if status == Nfsstat4::OldStateid {
            return;
        }
        let is_it = |known: &Stateid4| known.other == stateid.other;
        let Some(state) = self.states.files.get(file) else { return };
        let is_delegation = state.delegation.as_ref().is_some_and(|held| is_it(&held.stateid));
        let open = state.opens.values().find(|open| open.stateid.as_ref().is_some_and(is_it));
        let open = open.map(|open| ((*file, open.owner.id), Arc::clone(&open.owner)));
        let lock = state.locks.iter().find(|(_, locks)| locks.stateid.as_ref().is_some_and(is_it));
        let lock = lock.map(|(owners, locks)| (*owners, locks.ranges.is_empty()));
        if is_delegation {
            self.lose_delegation(file);
        } else if let Some((key, _)) = &open {
            self.invalidate_open(key, status);
        } else if let Some((owners, is_empty)) = lock {
            self.invalidate_lock(file, owners, is_empty, status);
        }
        if must_free(status) {
            let own = self.settings.credential.clone();
            let credential = open.map_or(own, |(_, owner)| owner.credential.clone());
            self.free_stateid(now, &credential, stateid);
        }
    }

    /// Drops the locks of a lock-owner, which the server no longer knows. Nothing is lost if there
    /// were none (`is_empty`).
    fn invalidate_lock(
        &mut self,
        file: &ServerHandle,
        owners: (u32, u64),
        is_empty: bool,
        status: Nfsstat4,
    ) {
        if let Some(state) = self.states.files.get_mut(file).filter(|_| is_empty) {
            state.locks.remove(&owners);
            return;
        }
        self.note(Notice::StateRevoked(*file, status));
        self.lose_locks(&(*file, owners.0));
    }

    /// Drops an open that the server no longer knows. It is opened again when needed, but its locks
    /// are lost.
    fn invalidate_open(&mut self, key: &OpenKey, status: Nfsstat4) {
        if status == Nfsstat4::OpenMode {
            if let Some(open) = self.states.open_mut(key) {
                open.access = 0;
            }
            return;
        }
        self.note(Notice::StateRevoked(key.0, status));
        let locked = |state: &super::file_states::FileState| {
            state
                .locks
                .iter()
                .any(|((owner, _), locks)| *owner == key.1 && !locks.ranges.is_empty())
        };
        if self.states.files.get(&key.0).is_some_and(locked) {
            return self.lose_locks(key);
        }
        if let Some(open) = self.states.open_mut(key) {
            (open.stateid, open.access) = (None, 0);
        }
    }

    /// Frees a revoked stateid at the server.
    pub(super) fn free_stateid(&mut self, now: Duration, credential: &[u8], stateid: Stateid4) {
        let call = CompoundCall::new(self.minor, credential);
        let request = call.op(op::FREE_STATEID, &stateid).once().finish();
        self.insert(PendingRequest::in_session(request, Job::Free, now));
    }

    /// Handles flags that report revoked state: asks which stateids are affected.
    pub(super) fn heed_revocations(&mut self, now: Duration, flags: u32) {
        let may_ask = self.testing.under_way == 0 && self.testing.not_before <= now;
        if flags & REVOKED == 0 || !may_ask {
            return;
        }
        self.testing.not_before = now + TEST_PAUSE;
        let all = self.states.stateids();
        for part in all.chunks(TESTED_MAX) {
            let stateids: Arc<[Stateid4]> = part.into();
            let arguments: TestStateid4args = Counted(part.to_vec());
            let call = CompoundCall::new(self.minor, &self.settings.credential);
            let request = call.op(op::TEST_STATEID, &arguments).finish();
            self.testing.under_way += 1;
            self.insert(PendingRequest::in_session(request, Job::Test(stateids), now));
        }
    }

    /// Handles the results of TEST_STATEID.
    pub(super) fn tested(&mut self, now: Duration, stateids: &[Stateid4], reply: &CompoundReply) {
        self.testing.under_way = self.testing.under_way.saturating_sub(1);
        let Ok(found) = reply.results().next::<TestStateid4resok>(op::TEST_STATEID) else { return };
        let files = self.states.files_of(stateids);
        for (stateid, status) in stateids.iter().zip(found.0) {
            if status != Nfsstat4::Ok
                && let Some(file) = files.get(&stateid.other)
            {
                self.invalidate(now, file, *stateid, status);
            }
        }
    }

    /// Notes that a search for revoked state has ended with its session.
    pub(super) fn test_lost(&mut self) {
        self.testing.under_way = self.testing.under_way.saturating_sub(1);
    }
}

/// Returns whether the server keeps a stateid until the client frees it (RFC 8881, 18.38).
const fn must_free(status: Nfsstat4) -> bool {
    matches!(status, Nfsstat4::Expired | Nfsstat4::AdminRevoked | Nfsstat4::DelegRevoked)
}

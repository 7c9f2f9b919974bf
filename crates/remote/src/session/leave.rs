//! The end of a mount: delegations are returned, opens are closed, and then the session and the
//! client ID are destroyed (RFC 8881, 18.37 and 18.50), so that the server need not wait for the
//! end of the lease before others get what this client held.

use std::time::Duration;

use comity_proto::nfs4::operation as op;

use super::file_states::OpenKey;
use super::job::Job;
use super::machine::ClientMachine;
use super::phase::ClientPhase;
use super::request::{SessionAnswer, SessionOutcome};
use crate::machine::CallFailure;
use crate::server_handle::ServerHandle;

/// Time without an answer after which the client ends without the server.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Longest time that the end may take. The lease ends what is left.
const LEAVE_MAX: Duration = Duration::from_secs(15);

/// The end of the client, while it is under way.
#[derive(Debug)]
pub(super) struct Leave {
    /// The request of the caller that waits for it.
    id: u64,
    begun: Duration,
}

impl ClientMachine {
    /// Begins to leave the server, at the request of a caller who waits for the end.
    pub(super) fn leave(&mut self, now: Duration) -> u64 {
        if self.phase != ClientPhase::Ready {
            self.phase = ClientPhase::Ended;
            return self.answer_at_once(Err(CallFailure::Ended));
        }
        let id = self.insert_waiter(now);
        self.leaving = Some(Leave { id, begun: now });
        let holds: Vec<u64> = self.states.holds.keys().copied().collect();
        for hold in holds {
            self.close(now, hold);
        }
        let delegated = self.states.files.iter().filter(|(_, state)| state.delegation.is_some());
        let delegated: Vec<ServerHandle> = delegated.map(|(file, _)| *file).collect();
        delegated.iter().for_each(|file| self.begin_return(now, file));
        id
    }

    /// Goes on when no request is under way any more: closes what is open, or ends the session.
    pub(super) fn go_on_leaving(&mut self, now: Duration) {
        let is_free = self.phase == ClientPhase::Ready && self.requests.len() == 1;
        if self.leaving.is_none() || !is_free {
            return;
        }
        for key in self.open_at_server() {
            self.expire_open(now, key);
        }
        if self.requests.len() > 1 {
            return self.dispatch(now);
        }
        let Some(session) = &self.session else { return };
        let record = self.control(op::DESTROY_SESSION, &session.sessionid);
        self.phase = ClientPhase::Leaving;
        self.send_control(now, record, Job::DestroySession);
    }

    fn open_at_server(&self) -> Vec<OpenKey> {
        let files = self.states.files.iter();
        let opens = files.flat_map(|(file, state)| state.opens.iter().map(|it| (*file, it)));
        let opens = opens.filter(|(_, (_, open))| open.stateid.is_some());
        opens.map(|(file, (owner, _))| (file, *owner)).collect()
    }

    /// Handles the reply to DESTROY_SESSION. The client ID is destroyed whatever it says: the
    /// session may have ended before.
    pub(super) fn session_destroyed(&mut self, now: Duration) {
        let Some(client) = &self.client else { return self.left(Ok(SessionAnswer::Done)) };
        let record = self.control(op::DESTROY_CLIENTID, &client.clientid);
        self.send_control(now, record, Job::DestroyClient);
    }

    /// Ends the client, and fails the requests that are left.
    pub(super) fn left(&mut self, outcome: SessionOutcome) {
        self.phase = ClientPhase::Ended;
        if let Some(leave) = self.leaving.take() {
            self.answer(leave.id, outcome);
        }
        let rest: Vec<u64> = self.requests.keys().copied().collect();
        rest.into_iter().for_each(|id| self.answer(id, Err(CallFailure::Ended)));
    }

    /// The time at which the client ends although the server has not answered.
    pub(super) fn leave_at(&self) -> Option<Duration> {
        let begun = self.leaving.as_ref()?.begun;
        Some((begun.max(self.heard()) + SILENCE_MAX).min(begun + LEAVE_MAX))
    }

    /// Ends the client if the server has been silent or slow for too long.
    pub(super) fn stop_leaving(&mut self, now: Duration) {
        if self.leave_at().is_some_and(|at| at <= now) {
            self.left(Err(CallFailure::TimedOut));
        }
    }
}

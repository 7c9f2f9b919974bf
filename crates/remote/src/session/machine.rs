use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{Clientid4, Seqid4, Sessionid4};

use super::callback::CallbackSlots;
use super::faults::StateTest;
use super::file_states::{FileStates, OpenKey};
use super::job::{Job, LockTaskKind};
use super::leave::Leave;
use super::notices::NoticeQueue;
use super::pending::{PendingRequest, RequestForm, RequestStage};
use super::phase::ClientPhase;
use super::prepare::Readiness;
use super::reclaim::ReclaimQueue;
use super::request::{SessionAnswer, SessionOutcome, SessionRequest};
use super::settings::{MachineSettings, Persistence};
use super::slots::SlotTable;

use crate::calls::{CallBytes, Heard, LinkPlace, OutstandingCalls, Sending};
use crate::machine::{CallFailure, Machine, MachineOutput, Notice, Responsiveness, Schedule};
use crate::server_handle::ServerHandle;

/// An output of this machine.
pub(super) type SessionOutput = MachineOutput<SessionOutcome>;

/// The state machine of a client of one server. See the module.
#[derive(Debug)]
pub(crate) struct ClientMachine {
    pub(super) settings: MachineSettings,
    pub(super) calls: OutstandingCalls,
    pub(super) phase: ClientPhase,
    /// The minor version in use.
    pub(super) minor: u32,
    pub(super) client: Option<KnownClient>,
    pub(super) session: Option<LiveSession>,
    /// True if a connection was made since the first CREATE_SESSION of the session was sent.
    pub(super) has_new_link: bool,
    /// The requests by number; numbers rise in order of arrival.
    pub(super) requests: BTreeMap<u64, PendingRequest>,
    pub(super) next_request: u64,
    /// Requests that wait for a slot.
    pub(super) waiting: BTreeSet<u64>,
    /// Requests that are sent again at a time.
    pub(super) delayed: Schedule,
    /// Requests that fail at a time.
    pub(super) deadlines: Schedule,
    /// Bytes of the records of all requests.
    pub(super) bytes: usize,
    pub(super) lease: Lease,
    pub(super) states: FileStates,
    /// Requests that wait for the end of an operation on an open.
    pub(super) blocked: HashMap<OpenKey, Vec<u64>>,
    /// The slots of the backchannel.
    pub(super) callbacks: CallbackSlots,
    /// Requests for locks that are held by others.
    pub(super) lock_waits: BTreeSet<u64>,
    /// Notifications of delegated directories that have not been applied.
    pub(super) notices: NoticeQueue,
    /// Recalled delegations, and the time at which each is returned even if data is unwritten.
    pub(super) overdue: BTreeMap<(Duration, u64), ServerHandle>,
    /// State that is still to be reclaimed.
    pub(super) reclaims: ReclaimQueue,
    pub(super) testing: StateTest,
    /// True once the log reports that the lease has moved.
    pub(super) has_moved: bool,
    pub(super) outputs: VecDeque<SessionOutput>,
    /// The end of the client, while it is under way.
    pub(super) leaving: Option<Leave>,
    responsiveness: Responsiveness,
}

/// The client as known to the server.
#[derive(Debug)]
pub(super) struct KnownClient {
    pub(super) clientid: Clientid4,
    /// The sequenceid of the next CREATE_SESSION.
    pub(super) sequence: Seqid4,
    /// True after RECLAIM_COMPLETE.
    pub(super) has_reclaimed: bool,
    /// The server's name for itself (`server_owner4.so_major_id`).
    pub(super) server: Box<[u8]>,
}

/// A session.
#[derive(Debug)]
pub(super) struct LiveSession {
    pub(super) sessionid: Sessionid4,
    pub(super) slots: SlotTable,
    /// Most bytes of a request and of a reply.
    pub(super) request_bytes_max: u32,
    pub(super) response_bytes_max: u32,
}

/// The client's lease.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) length: Duration,
    /// The time at which the request was sent that last renewed it.
    pub(super) renewed: Duration,
    /// True while a request is under way whose only purpose is renewal.
    pub(super) is_renewing: bool,
}

impl Machine for ClientMachine {
    type Request = SessionRequest;
    type Outcome = SessionOutcome;

    fn begin(&mut self, now: Duration) {
        if self.phase == ClientPhase::Idle {
            self.introduce(now);
        }
    }

    fn submit(&mut self, now: Duration, request: SessionRequest) -> u64 {
        let id = self.accept(now, request);
        match self.phase {
            ClientPhase::Ended => self.answer(id, Err(CallFailure::Ended)),
            _ => self.dispatch(now),
        }
        id
    }

    fn forsake(&mut self, id: u64) {
        let Some(pending) = self.requests.get_mut(&id) else { return };
        pending.is_forsaken |= std::mem::take(&mut pending.has_caller);
        // A request that holds an open exclusively continues: others wait for it.
        if pending.slot().is_none() && !pending.job.has_turn() {
            self.remove(id);
        }
    }

    fn handle_up(&mut self, now: Duration, place: LinkPlace) {
        if self.calls.handle_up(now, place) {
            self.has_new_link = true;
            self.bind(now, place);
        }
    }

    fn handle_down(&mut self, now: Duration, place: LinkPlace) {
        let lost = self.calls.handle_down(now, place);
        self.drop_requests(lost);
    }

    fn handle_record(&mut self, now: Duration, place: LinkPlace, bytes: Vec<u8>) {
        match self.calls.handle_record(now, place, &bytes) {
            Heard::Reply(owner) => {
                self.outputs.extend(self.responsiveness.answered(now).map(MachineOutput::Note));
                self.settle(now, (owner, place), bytes);
            }
            Heard::Call => self.heed_call(now, place, &bytes),
            Heard::Stray => {}
            Heard::Nonsense => {
                let lost = self.calls.give_up(now, place);
                self.drop_requests(lost);
            }
        }
        self.dispatch(now);
    }

    fn handle_timeout(&mut self, now: Duration) {
        let lost = self.calls.handle_timeout(now);
        self.drop_requests(lost);
        self.fail_overdue(now);
        self.send_delayed(now);
        self.renew(now);
        self.close_idle(now);
        self.return_overdue(now);
        let silence = self.responsiveness.check(now, self.oldest());
        self.outputs.extend(silence.map(MachineOutput::Note));
        self.stop_leaving(now);
        self.dispatch(now);
    }

    fn poll_timeout(&self) -> Option<Duration> {
        let times = [
            self.calls.poll_timeout(),
            self.delayed.next_at(),
            self.deadlines.next_at(),
            self.renew_at(),
            self.states
                .idle
                .first()
                .map(|(at, _)| *at)
                .filter(|_| self.phase == ClientPhase::Ready),
            self.overdue_at(),
            self.responsiveness.silent_at(self.oldest()),
            self.leave_at(),
        ];
        times.into_iter().flatten().min()
    }

    fn poll_output(&mut self, now: Duration) -> Option<SessionOutput> {
        let link = self.calls.poll_action(now).map(MachineOutput::Link);
        link.or_else(|| self.outputs.pop_front())
    }

    fn patience(&self) -> Option<Duration> {
        self.settings.persistence.patience()
    }

    fn bytes_in_flight(&self) -> usize {
        self.bytes
    }
}

/// The lease before the server has announced its length; most servers have 90 s.
const LEASE_FIRST: Duration = Duration::from_secs(90);

impl ClientMachine {
    /// Makes a client that is not connected.
    pub(crate) fn new(settings: MachineSettings) -> Self {
        let responsiveness = Responsiveness::new(settings.patience);
        let silence = responsiveness.silence_max();
        Self {
            calls: OutstandingCalls::new(settings.connections, silence, settings.seed),
            phase: ClientPhase::Idle,
            minor: settings.minors.0,
            client: None,
            session: None,
            has_new_link: false,
            requests: BTreeMap::new(),
            next_request: 1,
            waiting: BTreeSet::new(),
            delayed: Schedule::default(),
            deadlines: Schedule::default(),
            bytes: 0,
            lease: Lease { length: LEASE_FIRST, renewed: Duration::ZERO, is_renewing: false },
            states: FileStates::default(),
            blocked: HashMap::new(),
            callbacks: CallbackSlots::default(),
            lock_waits: BTreeSet::new(),
            notices: NoticeQueue::new(),
            overdue: BTreeMap::new(),
            reclaims: ReclaimQueue::default(),
            testing: StateTest::default(),
            has_moved: false,
            outputs: VecDeque::new(),
            leaving: None,
            responsiveness,
            settings,
        }
    }

    /// The minor version in use.
    pub(crate) const fn minor(&self) -> u32 {
        self.minor
    }

    /// Most bytes of a request and of a reply in the current session.
    pub(crate) fn message_bytes(&self) -> (u32, u32) {
        let limits =
            |session: &LiveSession| (session.request_bytes_max, session.response_bytes_max);
        self.session.as_ref().map_or((0, 0), limits)
    }

    /// The server's name for itself (`so_major_id`).
    pub(crate) fn server_identity(&self) -> &[u8] {
        self.client.as_ref().map_or(&[], |client| &client.server)
    }

    /// Sets the length of the lease.
    pub(crate) fn set_lease(&mut self, length: Duration) {
        self.lease.length = length.max(Duration::from_secs(1));
    }

    /// Accepts a request of a caller.
    fn accept(&mut self, now: Duration, request: SessionRequest) -> u64 {
        let pending = match request {
            SessionRequest::Compound(request) => {
                PendingRequest::in_session(request, Job::Verb, now)
            }
            SessionRequest::Open(task, request) => {
                PendingRequest::in_session(request, Job::Open(task), now)
            }
            SessionRequest::Delegate(task, _) if self.has_directory(&task.directory) => {
                return self.answer_at_once(Ok(SessionAnswer::Done));
            }
            SessionRequest::Delegate(task, request) => {
                PendingRequest::in_session(request, Job::Delegate(task), now)
            }
            SessionRequest::Close(open) => return self.close(now, open),
            SessionRequest::Lock(wanted) => return self.lock(now, wanted, LockTaskKind::Lock),
            SessionRequest::FindLock(wanted) => return self.lock(now, wanted, LockTaskKind::Find),
            SessionRequest::Return(file) => return self.return_for(now, &file),
            SessionRequest::Leave => return self.leave(now),
        };
        self.insert_for_caller(now, pending)
    }

    /// Adds a request for which a caller waits.
    pub(super) fn insert_for_caller(&mut self, now: Duration, mut pending: PendingRequest) -> u64 {
        pending.has_caller = true;
        if let Persistence::Soft(patience) = self.settings.persistence {
            pending.deadline = Some(now + patience);
        }
        self.insert(pending)
    }

    /// Adds a request without a call: a caller waits for the end of other requests.
    pub(super) fn insert_waiter(&mut self, now: Duration) -> u64 {
        let mut waiter = PendingRequest::unwritten(Job::Waiter, now);
        (waiter.has_caller, waiter.stage) = (true, RequestStage::Blocked);
        let id = self.insert(waiter);
        self.waiting.remove(&id);
        id
    }

    /// Answers a caller whose request needs no call to the server; returns the request's number.
    pub(super) fn answer_at_once(&mut self, outcome: SessionOutcome) -> u64 {
        let id = self.next_request;
        self.next_request += 1;
        self.outputs.push_back(MachineOutput::Done(id, outcome));
        id
    }

    pub(super) fn insert(&mut self, pending: PendingRequest) -> u64 {
        let id = self.next_request;
        self.next_request += 1;
        self.bytes += pending.record.len();
        if let Some(at) = pending.deadline {
            self.deadlines.add(at, id);
        }
        if matches!(pending.form, RequestForm::InSession(_)) {
            self.waiting.insert(id);
        }
        self.requests.insert(id, pending);
        id
    }

    /// Removes a request from all lists; its slot must have been released.
    pub(super) fn remove(&mut self, id: u64) -> Option<PendingRequest> {
        let pending = self.requests.remove(&id)?;
        self.bytes -= pending.record.len();
        self.waiting.remove(&id);
        if let Some(at) = pending.retry_at() {
            self.delayed.remove(at, id);
        }
        if let Some(at) = pending.deadline {
            self.deadlines.remove(at, id);
        }
        Some(pending)
    }

    /// Ends a request, and answers its caller if there is one.
    pub(super) fn answer(&mut self, id: u64, outcome: SessionOutcome) {
        if let Some(pending) = self.remove(id)
            && pending.has_caller
        {
            self.outputs.push_back(MachineOutput::Done(id, outcome));
        }
    }

    /// Sends waiting requests while slots are free.
    pub(super) fn dispatch(&mut self, now: Duration) {
        while let Some(id) = self.next_waiting() {
            let has_slot = |session: &LiveSession| session.slots.has_free();
            if !self.session.as_ref().is_some_and(has_slot) {
                return;
            }
            self.waiting.remove(&id);
            match self.prepare(now, id) {
                Readiness::Ready => self.send_in_slot(now, id),
                Readiness::Blocked(key) => self.block(id, key),
                Readiness::Over => {}
            }
        }
        self.go_on_leaving(now);
    }

    /// The first request that may be sent in the current phase.
    fn next_waiting(&self) -> Option<u64> {
        let may_go = |id: &&u64| {
            let job = self.requests.get(id).map(|pending| &pending.job);
            match self.phase {
                ClientPhase::Ready => true,
                ClientPhase::Reclaiming | ClientPhase::Completing => {
                    job.is_some_and(Job::is_recovery)
                }
                _ => false,
            }
        };
        self.waiting.iter().find(may_go).copied()
    }

    /// Makes a request wait for the end of an operation on an open.
    fn block(&mut self, id: u64, key: OpenKey) {
        if let Some(pending) = self.requests.get_mut(&id) {
            pending.stage = RequestStage::Blocked;
            self.blocked.entry(key).or_default().push(id);
        }
    }

    /// Resumes the requests that wait for an open.
    pub(super) fn unblock(&mut self, key: &OpenKey) {
        for id in self.blocked.remove(key).unwrap_or_default() {
            self.send_again(id);
        }
    }

    /// Continues after an operation on an open has ended: the requests that wait for the open, and
    /// the return of the file's delegation.
    pub(super) fn open_is_free(&mut self, now: Duration, key: &OpenKey) {
        self.unblock(key);
        self.go_on_returning(now, &key.0);
    }

    /// Sends the record of a request.
    pub(super) fn transmit(&mut self, now: Duration, id: u64, only_over: Option<LinkPlace>) {
        let Some(pending) = self.requests.get(&id) else { return };
        let record: CallBytes = Arc::clone(&pending.record);
        self.calls.send(now, Sending { owner: id, record, only_over });
    }

    /// Delays a request until a time.
    pub(super) fn delay(&mut self, at: Duration, id: u64, stage: RequestStage) {
        if let Some(pending) = self.requests.get_mut(&id) {
            pending.stage = stage;
            pending.delays = pending.delays.saturating_add(1);
            self.delayed.add(at, id);
        }
    }

    pub(super) fn note(&mut self, notice: Notice) {
        self.outputs.push_back(MachineOutput::Note(notice));
    }

    /// Sends the delayed requests that are due.
    fn send_delayed(&mut self, now: Duration) {
        while let Some(id) = self.delayed.pop_due(now) {
            let Some(pending) = self.requests.get_mut(&id) else { continue };
            match (pending.stage, &pending.form) {
                (RequestStage::SlotDelayed(slot, _), _) => {
                    pending.stage = RequestStage::InSlot(slot);
                    self.transmit(now, id, None);
                }
                (_, RequestForm::Alone) => {
                    pending.stage = RequestStage::Sent;
                    self.send_control_again(now, id);
                }
                (_, RequestForm::InSession(_)) => {
                    pending.stage = RequestStage::Waiting;
                    self.waiting.insert(id);
                }
            }
        }
    }

    /// Fails the requests that have timed out. One in a slot stays there without a caller.
    fn fail_overdue(&mut self, now: Duration) {
        while let Some(id) = self.deadlines.pop_due(now) {
            let Some(pending) = self.requests.get_mut(&id) else { continue };
            pending.deadline = None;
            if self.settings.awaits_changes && pending.may_have_changed() {
                continue;
            }
            if std::mem::take(&mut pending.has_caller) {
                pending.is_forsaken = true;
                self.outputs.push_back(MachineOutput::Done(id, Err(CallFailure::TimedOut)));
            }
            if pending.slot().is_none() && !pending.job.has_turn() {
                self.remove(id);
            }
        }
    }

    fn drop_requests(&mut self, lost: Vec<u64>) {
        lost.into_iter().for_each(|id| drop(self.remove(id)));
    }

    /// The time of the last reply.
    pub(super) const fn heard(&self) -> Duration {
        self.responsiveness.heard()
    }

    /// The time since when the oldest request has waited.
    fn oldest(&self) -> Option<Duration> {
        self.requests.values().next().map(|pending| pending.since)
    }
}

#[cfg(test)]
impl ClientMachine {
    /// The id of the current session.
    pub(crate) fn sessionid(&self) -> Sessionid4 {
        self.session.as_ref().unwrap().sessionid
    }

    /// Slot and sequence number of a request.
    pub(crate) fn slot_of(&self, id: u64) -> Option<(u32, u32)> {
        self.requests.get(&id)?.slot().map(|used| (used.slot, used.sequenceid))
    }

    /// Slots that may be used.
    pub(crate) fn usable_slots(&self) -> u32 {
        self.session.as_ref().unwrap().slots.usable()
    }
}

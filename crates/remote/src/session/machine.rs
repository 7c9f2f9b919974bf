use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{Clientid4, Seqid4, Sessionid4};

use super::job::Job;
use super::pending::{PendingRequest, RequestForm, RequestStage};
use super::phase::ClientPhase;
use super::settings::{MachineSettings, Persistence};
use super::slots::SlotTable;
use crate::calls::{CallBytes, Heard, LinkPlace, OutstandingCalls, Sending};
use crate::compound::{CompoundReply, CompoundRequest};
use crate::machine::{CallFailure, Machine, MachineOutput, Notice};

/// The outcome of a request.
pub(crate) type CallOutcome = Result<CompoundReply, CallFailure>;

/// An order of this machine.
pub(super) type SessionOutput = MachineOutput<CallOutcome>;

/// A client of one server. See the module.
#[derive(Debug)]
pub(crate) struct ClientMachine {
    pub(super) settings: MachineSettings,
    pub(super) calls: OutstandingCalls,
    pub(super) phase: ClientPhase,
    /// The minor version that is spoken.
    pub(super) minor: u32,
    pub(super) client: Option<KnownClient>,
    pub(super) session: Option<LiveSession>,
    /// By number, and so in the order in which they came.
    pub(super) requests: BTreeMap<u64, PendingRequest>,
    pub(super) next_request: u64,
    /// Requests that wait for a slot, in the order in which they came.
    pub(super) waiting: BTreeSet<u64>,
    /// Requests that are to be sent again, by the time of that.
    pub(super) delayed: BTreeSet<(Duration, u64)>,
    /// Requests that fail if they have not ended by a time.
    pub(super) deadlines: BTreeSet<(Duration, u64)>,
    /// Bytes of the records of all requests.
    pub(super) bytes: usize,
    pub(super) lease: Lease,
    pub(super) outputs: VecDeque<SessionOutput>,
    responsiveness: Responsiveness,
}

/// The client as the server knows it.
#[derive(Debug)]
pub(super) struct KnownClient {
    pub(super) clientid: Clientid4,
    /// The sequenceid of the next CREATE_SESSION.
    pub(super) sequence: Seqid4,
    /// True if RECLAIM_COMPLETE was done.
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
    /// The time at which the request was sent that renewed it last.
    pub(super) renewed: Duration,
    /// True while a request is under way only to renew it.
    pub(super) is_renewing: bool,
}

/// The last sign of life of the server.
#[derive(Debug, Default)]
struct Responsiveness {
    heard: Duration,
    is_reported: bool,
}

impl Machine for ClientMachine {
    type Request = CompoundRequest;
    type Outcome = CallOutcome;

    fn begin(&mut self, now: Duration) {
        if self.phase == ClientPhase::Idle {
            self.introduce(now);
        }
    }

    fn submit(&mut self, now: Duration, request: CompoundRequest) -> u64 {
        let mut pending = PendingRequest::in_session(request, Job::Verb, now);
        if let Persistence::Soft(patience) = self.settings.persistence {
            pending.deadline = Some(now + patience);
        }
        let id = self.insert(pending);
        match self.phase {
            ClientPhase::Ended => self.complete(id, Err(CallFailure::Ended)),
            _ => self.dispatch(now),
        }
        id
    }

    fn forsake(&mut self, id: u64) {
        let Some(pending) = self.requests.get_mut(&id) else { return };
        pending.is_forsaken = true;
        if pending.slot().is_none() {
            self.remove(id);
        }
    }

    fn handle_up(&mut self, now: Duration, place: LinkPlace) {
        if self.calls.handle_up(now, place) {
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
                self.note_answer(now);
                self.settle(now, (owner, place), bytes);
            }
            Heard::Call => {}
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
        self.note_silence(now);
        self.dispatch(now);
    }

    fn poll_timeout(&self) -> Option<Duration> {
        let first = |set: &BTreeSet<(Duration, u64)>| set.first().map(|(at, _)| *at);
        let times = [
            self.calls.poll_timeout(),
            first(&self.delayed),
            first(&self.deadlines),
            self.renew_at(),
            self.silence_at(),
        ];
        times.into_iter().flatten().min()
    }

    fn poll_output(&mut self, now: Duration) -> Option<SessionOutput> {
        let link = self.calls.poll_action(now).map(MachineOutput::Link);
        link.or_else(|| self.outputs.pop_front())
    }

    fn bytes_in_flight(&self) -> usize {
        self.bytes
    }
}

/// The lease before the server has said how long it is: that of most servers.
const LEASE_FIRST: Duration = Duration::from_secs(90);
/// Connections are given up after this multiple of the time after which a server counts as not
/// responding.
const SILENCE_FACTOR: u32 = 3;

impl ClientMachine {
    /// Makes a client that has not begun.
    pub(crate) fn new(settings: MachineSettings) -> Self {
        let silence = settings.patience * SILENCE_FACTOR;
        Self {
            calls: OutstandingCalls::new(settings.connections, silence, settings.seed),
            phase: ClientPhase::Idle,
            minor: settings.minors.0,
            client: None,
            session: None,
            requests: BTreeMap::new(),
            next_request: 1,
            waiting: BTreeSet::new(),
            delayed: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            bytes: 0,
            lease: Lease { length: LEASE_FIRST, renewed: Duration::ZERO, is_renewing: false },
            outputs: VecDeque::new(),
            responsiveness: Responsiveness::default(),
            settings,
        }
    }

    /// The minor version that is spoken.
    pub(crate) const fn minor(&self) -> u32 {
        self.minor
    }

    /// Most bytes of a request and of a reply in the present session.
    pub(crate) fn message_bytes(&self) -> (u32, u32) {
        let limits =
            |session: &LiveSession| (session.request_bytes_max, session.response_bytes_max);
        self.session.as_ref().map_or((0, 0), limits)
    }

    /// The server's name for itself.
    pub(crate) fn server_identity(&self) -> &[u8] {
        self.client.as_ref().map_or(&[], |client| &client.server)
    }

    /// The server has told the length of its lease.
    pub(crate) fn set_lease(&mut self, length: Duration) {
        self.lease.length = length.max(Duration::from_secs(1));
    }

    pub(super) fn insert(&mut self, pending: PendingRequest) -> u64 {
        let id = self.next_request;
        self.next_request += 1;
        self.bytes += pending.record.len();
        self.deadlines.extend(pending.deadline.map(|at| (at, id)));
        if matches!(pending.form, RequestForm::InSession(_)) {
            self.waiting.insert(id);
        }
        self.requests.insert(id, pending);
        id
    }

    /// Removes a request from all lists; its slot must have been given back.
    pub(super) fn remove(&mut self, id: u64) -> Option<PendingRequest> {
        let pending = self.requests.remove(&id)?;
        self.bytes -= pending.record.len();
        self.waiting.remove(&id);
        if let Some(at) = pending.retry_at() {
            self.delayed.remove(&(at, id));
        }
        if let Some(at) = pending.deadline {
            self.deadlines.remove(&(at, id));
        }
        Some(pending)
    }

    /// Ends a request of a caller's.
    pub(super) fn complete(&mut self, id: u64, outcome: CallOutcome) {
        if let Some(pending) = self.remove(id)
            && pending.job == Job::Verb
            && !pending.is_forsaken
        {
            self.outputs.push_back(MachineOutput::Done(id, outcome));
        }
    }

    /// Sends requests that wait, as far as there are slots.
    pub(super) fn dispatch(&mut self, now: Duration) {
        while let Some(id) = self.next_waiting() {
            let Some(session) = &mut self.session else { return };
            let Some(slot) = session.slots.take() else { return };
            self.waiting.remove(&id);
            self.send_in_slot(now, id, slot);
        }
    }

    /// The first request that may be sent in the present phase.
    fn next_waiting(&self) -> Option<u64> {
        let may_go = |id: &&u64| {
            let job = self.requests.get(id).map(|pending| pending.job);
            match self.phase {
                ClientPhase::Ready => true,
                ClientPhase::Reclaiming | ClientPhase::Completing => job != Some(Job::Verb),
                _ => false,
            }
        };
        self.waiting.iter().find(may_go).copied()
    }

    /// Sends the record of a request.
    pub(super) fn transmit(&mut self, now: Duration, id: u64, only_over: Option<LinkPlace>) {
        let Some(pending) = self.requests.get(&id) else { return };
        let record: CallBytes = Arc::clone(&pending.record);
        self.calls.send(now, Sending { owner: id, record, only_over });
    }

    /// Puts a request off.
    pub(super) fn delay(&mut self, at: Duration, id: u64, stage: RequestStage) {
        if let Some(pending) = self.requests.get_mut(&id) {
            pending.stage = stage;
            pending.delays = pending.delays.saturating_add(1);
            self.delayed.insert((at, id));
        }
    }

    pub(super) fn note(&mut self, notice: Notice) {
        self.outputs.push_back(MachineOutput::Note(notice));
    }

    /// Sends what was put off until now.
    fn send_delayed(&mut self, now: Duration) {
        while let Some((at, id)) = self.delayed.first().copied().filter(|(at, _)| *at <= now) {
            self.delayed.remove(&(at, id));
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

    /// Fails the requests whose time is over. One in a slot stays there without a caller.
    fn fail_overdue(&mut self, now: Duration) {
        while let Some((at, id)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, id));
            let Some(pending) = self.requests.get_mut(&id) else { continue };
            pending.deadline = None;
            if pending.slot().is_none() {
                self.complete(id, Err(CallFailure::TimedOut));
            } else if !std::mem::replace(&mut pending.is_forsaken, true) {
                self.outputs.push_back(MachineOutput::Done(id, Err(CallFailure::TimedOut)));
            }
        }
    }

    fn drop_requests(&mut self, lost: Vec<u64>) {
        lost.into_iter().for_each(|id| drop(self.remove(id)));
    }

    fn note_answer(&mut self, now: Duration) {
        self.responsiveness.heard = now;
        if std::mem::take(&mut self.responsiveness.is_reported) {
            self.note(Notice::RespondsAgain);
        }
    }

    /// The time at which the server counts as not responding.
    fn silence_at(&self) -> Option<Duration> {
        if self.responsiveness.is_reported {
            return None;
        }
        let first = self.requests.values().next()?.since;
        Some(first.max(self.responsiveness.heard) + self.settings.patience)
    }

    fn note_silence(&mut self, now: Duration) {
        if self.silence_at().is_some_and(|at| at <= now) {
            self.responsiveness.is_reported = true;
            self.note(Notice::NotResponding);
        }
    }
}

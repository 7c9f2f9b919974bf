use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::call::{StatelessCall, StatelessReply};
use crate::calls::{CallBytes, Heard, LinkPlace, OutstandingCalls, Sending};
use crate::machine::{
    CallFailure, Machine, MachineOutput, MountFailure, Responsiveness, Schedule, pause,
};
use crate::session::Persistence;

/// The outcome of a call.
pub(crate) type StatelessOutcome = Result<StatelessReply, CallFailure>;

/// The settings of a client.
#[derive(Debug, Clone)]
pub(crate) struct StatelessSettings {
    /// The program and version whose NULL procedure is called first.
    pub(crate) program: (u32, u32),
    /// The credential of the first call, as the body of AUTH_SYS.
    pub(crate) credential: Vec<u8>,
    /// Connections to the server.
    pub(crate) connections: usize,
    /// The time without a reply after which a server counts as not responding.
    pub(crate) patience: Duration,
    /// The time for which a call is repeated until it has a reply.
    pub(crate) persistence: Persistence,
    /// A number that differs from run to run.
    pub(crate) seed: u32,
}

/// The state machine of a client of one server. It first calls the procedure NULL, to see whether
/// the program is there.
#[derive(Debug)]
pub(crate) struct StatelessMachine {
    settings: StatelessSettings,
    calls: OutstandingCalls,
    /// Calls by number; numbers rise in order of arrival.
    pending: BTreeMap<u64, PendingCall>,
    next: u64,
    /// Calls that are sent again at a time.
    delayed: Schedule,
    /// Calls that fail at a time.
    deadlines: Schedule,
    bytes: usize,
    /// Number of connections made so far.
    connections_made: u64,
    responsiveness: Responsiveness,
    outputs: VecDeque<MachineOutput<StatelessOutcome>>,
}

/// A call that has not ended.
#[derive(Debug)]
struct PendingCall {
    record: CallBytes,
    is_put_off: fn(&[u8]) -> bool,
    /// The time at which it fails, if it may.
    deadline: Option<Duration>,
    /// The time at which it is sent again, if the server asked for that.
    retry_at: Option<Duration>,
    /// The time since when its caller has waited.
    since: Duration,
    /// Number of times that the server asked to try again later.
    delays: u32,
}

/// The number of the first call, to NULL.
const INTRODUCTION: u64 = 0;

impl Machine for StatelessMachine {
    type Request = StatelessCall;
    type Outcome = StatelessOutcome;

    fn begin(&mut self, now: Duration) {
        let (program, version) = self.settings.program;
        let call = StatelessCall::new((program, version, 0), &self.settings.credential, &());
        self.accept(now, INTRODUCTION, call);
    }

    fn submit(&mut self, now: Duration, call: StatelessCall) -> u64 {
        let id = self.next;
        self.next += 1;
        self.accept(now, id, call);
        id
    }

    fn forsake(&mut self, id: u64) {
        self.remove(id);
        self.calls.forget(id);
    }

    fn handle_up(&mut self, now: Duration, place: LinkPlace) {
        if self.calls.handle_up(now, place) {
            self.connections_made += 1;
        }
    }

    fn handle_down(&mut self, now: Duration, place: LinkPlace) {
        self.calls.handle_down(now, place);
    }

    fn handle_record(&mut self, now: Duration, place: LinkPlace, bytes: Vec<u8>) {
        match self.calls.handle_record(now, place, &bytes) {
            Heard::Reply(id) => self.settle(now, id, bytes),
            // The server calls no program of this client.
            Heard::Call | Heard::Stray => {}
            Heard::Nonsense => drop(self.calls.give_up(now, place)),
        }
    }

    fn handle_timeout(&mut self, now: Duration) {
        self.calls.handle_timeout(now);
        self.fail_overdue(now);
        while let Some(id) = self.delayed.pop_due(now) {
            self.transmit(now, id);
        }
        let silence = self.responsiveness.check(now, self.oldest());
        self.outputs.extend(silence.map(MachineOutput::Note));
    }

    fn poll_timeout(&self) -> Option<Duration> {
        let times = [
            self.calls.poll_timeout(),
            self.delayed.next_at(),
            self.deadlines.next_at(),
            self.responsiveness.silent_at(self.oldest()),
        ];
        times.into_iter().flatten().min()
    }

    fn poll_output(&mut self, now: Duration) -> Option<MachineOutput<StatelessOutcome>> {
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

impl StatelessMachine {
    /// Makes a client that is not connected.
    pub(crate) fn new(settings: StatelessSettings) -> Self {
        let responsiveness = Responsiveness::new(settings.patience);
        let silence = responsiveness.silence_max();
        Self {
            calls: OutstandingCalls::new(settings.connections, silence, settings.seed),
            pending: BTreeMap::new(),
            next: INTRODUCTION + 1,
            delayed: Schedule::default(),
            deadlines: Schedule::default(),
            bytes: 0,
            connections_made: 0,
            responsiveness,
            outputs: VecDeque::new(),
            settings,
        }
    }

    /// Number of connections made so far. It rises after a restart of the server, which ends all
    /// connections.
    pub(crate) const fn connections_made(&self) -> u64 {
        self.connections_made
    }

    fn accept(&mut self, now: Duration, id: u64, call: StatelessCall) {
        let StatelessCall { record, is_put_off, is_awaited } = call;
        self.bytes += record.len();
        let patience = self.settings.persistence.patience();
        let may_fail = !is_awaited && id != INTRODUCTION;
        let deadline = patience.filter(|_| may_fail).map(|patience| now + patience);
        if let Some(at) = deadline {
            self.deadlines.add(at, id);
        }
        let (record, retry_at) = (Arc::new(record), None);
        let call = PendingCall { record, is_put_off, deadline, retry_at, since: now, delays: 0 };
        self.pending.insert(id, call);
        self.transmit(now, id);
    }

    fn transmit(&mut self, now: Duration, id: u64) {
        if let Some(call) = self.pending.get(&id) {
            let record = Arc::clone(&call.record);
            self.calls.send(now, Sending { owner: id, record, only_over: None });
        }
    }

    fn remove(&mut self, id: u64) -> Option<PendingCall> {
        let call = self.pending.remove(&id)?;
        self.bytes -= call.record.len();
        if let Some(at) = call.retry_at {
            self.delayed.remove(at, id);
        }
        if let Some(at) = call.deadline {
            self.deadlines.remove(at, id);
        }
        Some(call)
    }

    /// Handles the reply to a call.
    fn settle(&mut self, now: Duration, id: u64, bytes: Vec<u8>) {
        self.outputs.extend(self.responsiveness.answered(now).map(MachineOutput::Note));
        let reply = StatelessReply::parse(bytes).map_err(CallFailure::Refused);
        let Some(call) = self.pending.get_mut(&id) else { return };
        if reply.as_ref().is_ok_and(|reply| (call.is_put_off)(reply.results())) {
            let at = now + pause(call.delays);
            call.delays = call.delays.saturating_add(1);
            call.retry_at = Some(at);
            self.delayed.add(at, id);
            return;
        }
        self.end(id, reply);
    }

    fn end(&mut self, id: u64, outcome: StatelessOutcome) {
        if self.remove(id).is_none() {
            return;
        }
        self.outputs.push_back(match outcome {
            Ok(_) if id == INTRODUCTION => MachineOutput::Ready,
            Err(CallFailure::Refused(refusal)) if id == INTRODUCTION => {
                MachineOutput::Failed(MountFailure::Refused(refusal))
            }
            outcome => MachineOutput::Done(id, outcome),
        });
    }

    fn fail_overdue(&mut self, now: Duration) {
        while let Some(id) = self.deadlines.pop_due(now) {
            self.calls.forget(id);
            self.end(id, Err(CallFailure::TimedOut));
        }
    }

    /// The time since when the oldest call has waited.
    fn oldest(&self) -> Option<Duration> {
        self.pending.values().next().map(|call| call.since)
    }
}

#[cfg(test)]
mod tests {
    use comity_rpc::{ReplyVerifier, accepted};
    use comity_xdr::Encoder;

    use super::*;
    use crate::calls::LinkAction;
    use crate::rpc::RpcRefusal;

    const NOW: Duration = Duration::from_secs(1);
    const PATIENCE: Duration = Duration::from_secs(10);

    fn machine(persistence: Persistence) -> StatelessMachine {
        StatelessMachine::new(StatelessSettings {
            program: (7, 3),
            credential: Vec::new(),
            connections: 1,
            patience: PATIENCE,
            persistence,
            seed: 100,
        })
    }

    fn call() -> StatelessCall {
        let is_put_off = |results: &[u8]| results == [0, 0, 0, 8];
        StatelessCall { is_put_off, ..StatelessCall::new((7, 3, 1), b"", &5_u32) }
    }

    /// Does what is due at this time; returns the xids that were sent, and the calls that ended.
    fn drive(machine: &mut StatelessMachine, now: Duration) -> (Vec<u32>, Vec<u64>) {
        let (mut sent, mut ended) = (Vec::new(), Vec::new());
        machine.handle_timeout(now);
        while let Some(output) = machine.poll_output(now) {
            match output {
                MachineOutput::Link(LinkAction::Connect(place)) => machine.handle_up(now, place),
                MachineOutput::Link(LinkAction::Send(_, record)) => {
                    sent.push(u32::from_be_bytes(*record[4..8].first_chunk().unwrap()));
                }
                MachineOutput::Done(id, outcome) => {
                    assert_eq!(outcome.is_err(), matches!(outcome, Err(CallFailure::TimedOut)));
                    ended.push(id);
                }
                _ => {}
            }
        }
        (sent, ended)
    }

    fn place(machine: &StatelessMachine) -> LinkPlace {
        machine.calls.any_up().unwrap()
    }

    fn reply(xid: u32, status: u32) -> Vec<u8> {
        let mut reply = Encoder::new();
        accepted::success(&mut reply, xid, &ReplyVerifier::Empty);
        reply.value(&status);
        reply.bytes().to_vec()
    }

    #[test]
    fn a_call_that_the_server_delays_is_repeated_until_it_succeeds() {
        let mut machine = machine(Persistence::Hard);
        let id = machine.submit(NOW, call());
        let (sent, _) = drive(&mut machine, NOW);
        let link = place(&machine);
        machine.handle_record(NOW, link, reply(sent[0], 8));
        assert_eq!(drive(&mut machine, NOW), (vec![], vec![]));
        let later = NOW + pause(0);
        assert_eq!(machine.poll_timeout(), Some(later));
        let (sent, _) = drive(&mut machine, later);
        machine.handle_record(later, link, reply(sent[0], 0));
        assert_eq!(drive(&mut machine, later), (vec![], vec![id]));
        assert_eq!(machine.bytes_in_flight(), 0);
    }

    #[test]
    fn a_call_goes_out_again_over_the_next_connection_under_the_same_xid() {
        let mut machine = machine(Persistence::Hard);
        machine.submit(NOW, call());
        let (sent, _) = drive(&mut machine, NOW);
        let link = place(&machine);
        machine.handle_down(NOW, link);
        assert_eq!(drive(&mut machine, NOW).0, sent);
        assert_eq!(machine.connections_made(), 2);
    }

    #[test]
    fn a_call_times_out_if_the_mount_is_soft() {
        let mut soft = machine(Persistence::Soft(PATIENCE));
        let id = soft.submit(NOW, call());
        assert_eq!(drive(&mut soft, NOW), (vec![101], vec![]));
        assert_eq!(drive(&mut soft, NOW + PATIENCE), (vec![], vec![id]));
        let mut hard = machine(Persistence::Hard);
        hard.submit(NOW, call());
        assert!(drive(&mut hard, NOW + PATIENCE * 2).1.is_empty());
    }

    #[test]
    fn the_client_fails_if_the_server_lacks_the_program() {
        let mut machine = machine(Persistence::Hard);
        machine.begin(NOW);
        let (sent, _) = drive(&mut machine, NOW);
        let mut refused = Encoder::new();
        accepted::prog_mismatch(&mut refused, sent[0], &ReplyVerifier::Empty, 4, 4);
        let link = place(&machine);
        machine.handle_record(NOW, link, refused.bytes().to_vec());
        let failed = MountFailure::Refused(RpcRefusal::VersionMismatch(4, 4));
        let output = machine.poll_output(NOW);
        assert!(matches!(output, Some(MachineOutput::Failed(found)) if found == failed));
    }
}

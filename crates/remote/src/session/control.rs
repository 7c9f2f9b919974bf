//! Making a session, and making another after it was lost (RFC 8881, 2.4, 2.10 and 8.4).

use std::time::Duration;

use comity_proto::nfs4::{
    BindConnToSession4, CallbackSecParms4, ChannelAttrs4, ClientOwner4, CreateSession4args,
    CreateSession4resok, ExchangeId4args, ExchangeId4resok, Nfsstat4, Sessionid4, StateProtect4a,
    channel_dir, create_session, exchgid, operation as op, seq4_status,
};
use comity_xdr::{Counted, Encode, Opaque};

use super::faults::StateTest;
use super::job::Job;
use super::machine::{ClientMachine, KnownClient, LiveSession};
use super::pending::{PendingRequest, RequestStage};
use super::phase::ClientPhase;
use super::request::SessionAnswer;
use super::slots::SlotTable;
use crate::calls::LinkPlace;
use crate::compound::{CompoundCall, CompoundReply, OpFailure, lone_operation};
use crate::limits::{
    CALLBACK_BYTES_MAX, CALLBACK_OPERATIONS_MAX, CALLBACK_SLOTS, COMPOUND_BYTES, KEPT_REPLY_BYTES,
    OPERATIONS_MAX, SLOTS_WANTED,
};
use crate::machine::{MachineOutput, MountFailure, Notice};
use crate::rpc::RpcRefusal;

/// The program number of callbacks, from the range of transient numbers.
pub(super) const CALLBACK_PROGRAM: u32 = 0x4000_0000;

/// The lease is renewed when one third of it has passed.
const RENEWAL_PART: u32 = 3;

impl ClientMachine {
    /// Sends EXCHANGE_ID.
    pub(super) fn introduce(&mut self, now: Duration) {
        self.phase = ClientPhase::Introducing;
        let record = self.exchange_id();
        self.send_control(now, record, Job::Introduce);
    }

    fn exchange_id(&self) -> Vec<u8> {
        let identity = &self.settings.identity;
        let clientowner = ClientOwner4 { verifier: identity.verifier, id: Opaque(&identity.owner) };
        let flags = exchgid::SUPP_MOVED_REFER | exchgid::SUPP_MOVED_MIGR | exchgid::USE_NON_PNFS;
        let (state_protect, client_impl_id) = (StateProtect4a::None, None);
        let arguments = ExchangeId4args { clientowner, flags, state_protect, client_impl_id };
        self.control(op::EXCHANGE_ID, &arguments)
    }

    pub(super) fn control(&self, operation: u32, arguments: &impl Encode) -> Vec<u8> {
        lone_operation(self.minor, &self.settings.credential, operation, arguments)
    }

    /// Sends a COMPOUND of one operation without a session.
    pub(super) fn send_control(&mut self, now: Duration, record: Vec<u8>, job: Job) {
        let only_over = match job {
            Job::Bind(place, _) => Some(place),
            _ => None,
        };
        let mut pending = PendingRequest::alone(record, job, now);
        pending.stage = RequestStage::Sent;
        let id = self.insert(pending);
        self.transmit(now, id, only_over);
    }

    /// Repeats a control request after the pause for DELAY.
    pub(super) fn send_control_again(&mut self, now: Duration, id: u64) {
        let Some(pending) = self.requests.get(&id) else { return };
        let only_over = match pending.job {
            Job::Bind(place, _) => Some(place),
            _ => None,
        };
        self.transmit(now, id, only_over);
    }

    /// Handles the reply to a COMPOUND without a session.
    pub(super) fn settle_control(
        &mut self,
        now: Duration,
        id: u64,
        reply: Result<CompoundReply, RpcRefusal>,
    ) {
        let Some(job) = self.requests.get(&id).map(|pending| pending.job.clone()) else { return };
        if matches!(&reply, Ok(reply) if is_later(reply.status)) {
            return self.put_off(now, id);
        }
        self.remove(id);
        match job {
            Job::Introduce => self.introduced(now, reply),
            Job::CreateSession => self.session_created(now, reply),
            Job::Bind(_, sessionid) => self.bound(now, &sessionid, reply),
            Job::DestroySession => self.session_destroyed(now),
            Job::DestroyClient => self.left(Ok(SessionAnswer::Done)),
            _ => {}
        }
    }

    fn introduced(&mut self, now: Duration, reply: Result<CompoundReply, RpcRefusal>) {
        let reply = match reply {
            // The server executed no operation, so the reply has no results to read.
            Ok(reply) if reply.status == Nfsstat4::MinorVersMismatch => {
                return self.lower_minor(now);
            }
            Ok(reply) => reply,
            Err(RpcRefusal::VersionMismatch(..) | RpcRefusal::ProgramUnavailable) => {
                return self.not_introduced(now, MountFailure::Version);
            }
            Err(refusal) => return self.not_introduced(now, MountFailure::Refused(refusal)),
        };
        match reply.results().next::<ExchangeId4resok<'_>>(op::EXCHANGE_ID) {
            Ok(known) => {
                let is_confirmed = known.flags & exchgid::CONFIRMED_R != 0;
                self.known_as(now, known_client(&known), is_confirmed);
            }
            Err(OpFailure::Status(status)) => {
                self.not_introduced(now, MountFailure::Status("EXCHANGE_ID", status));
            }
            Err(OpFailure::Malformed(reason)) => {
                self.not_introduced(now, MountFailure::Refused(reason.into()));
            }
        }
    }

    /// Handles the client ID that EXCHANGE_ID returned. The client's state still exists if it is
    /// confirmed and the same as before.
    fn known_as(&mut self, now: Duration, mut client: KnownClient, is_confirmed: bool) {
        if let Some(before) = &self.client {
            let is_same = is_confirmed && before.clientid == client.clientid;
            client.has_reclaimed = is_same && before.has_reclaimed;
            if !is_same {
                self.note(Notice::ClientLost);
            }
        }
        self.client = Some(client);
        self.create_session(now);
    }

    fn lower_minor(&mut self, now: Duration) {
        if self.minor > self.settings.minors.1 && self.client.is_none() {
            self.minor -= 1;
            self.introduce(now);
        } else {
            self.not_introduced(now, MountFailure::Version);
        }
    }

    /// Handles a failed introduction: during the mount the machine ends; later it retries after a
    /// pause.
    fn not_introduced(&mut self, now: Duration, failure: MountFailure) {
        if self.client.is_none() {
            self.phase = ClientPhase::Ended;
            self.outputs.push_back(MachineOutput::Failed(failure));
            return;
        }
        self.note(Notice::NotIntroduced(failure));
        self.phase = ClientPhase::Introducing;
        let pending = PendingRequest::alone(self.exchange_id(), Job::Introduce, now);
        let id = self.insert(pending);
        let at = now + REINTRODUCTION;
        self.delay(at, id, RequestStage::Delayed(at));
    }

    /// Makes a session.
    pub(super) fn create_session(&mut self, now: Duration) {
        let Some(client) = &self.client else { return self.introduce(now) };
        self.phase = ClientPhase::CreatingSession;
        self.has_new_link = false;
        let data = self.settings.data_bytes_max + COMPOUND_BYTES;
        let arguments = CreateSession4args {
            clientid: client.clientid,
            sequence: client.sequence,
            flags: create_session::CONN_BACK_CHAN,
            fore_chan: channel((data, KEPT_REPLY_BYTES), OPERATIONS_MAX, SLOTS_WANTED),
            back_chan: channel(CALLBACK_BYTES, CALLBACK_OPERATIONS_MAX, CALLBACK_SLOTS),
            cb_program: CALLBACK_PROGRAM,
            sec_parms: Counted(vec![CallbackSecParms4::None]),
        };
        let record = self.control(op::CREATE_SESSION, &arguments);
        self.send_control(now, record, Job::CreateSession);
    }

    fn session_created(&mut self, now: Duration, reply: Result<CompoundReply, RpcRefusal>) {
        let made = match reply {
            Ok(mut reply) => reply.first::<CreateSession4resok>(op::CREATE_SESSION),
            Err(refusal) => {
                return self.not_introduced(now, MountFailure::Refused(refusal));
            }
        };
        match made {
            Ok(made) => self.in_session(now, &made),
            // The sequence number may be wrong, or the client unknown: EXCHANGE_ID gives the
            // current values.
            Err(OpFailure::Status(Nfsstat4::StaleClientid | Nfsstat4::SeqMisordered)) => {
                self.introduce(now);
            }
            Err(OpFailure::Status(status)) => {
                self.not_introduced(now, MountFailure::Status("CREATE_SESSION", status));
            }
            Err(OpFailure::Malformed(reason)) => {
                self.not_introduced(now, MountFailure::Refused(reason.into()));
            }
        }
    }

    fn in_session(&mut self, now: Duration, made: &CreateSession4resok) {
        let Some(client) = &mut self.client else { return };
        client.sequence = client.sequence.wrapping_add(1);
        self.session = Some(LiveSession {
            sessionid: made.sessionid,
            slots: SlotTable::new(made.fore_chan.maxrequests),
            request_bytes_max: made.fore_chan.maxrequestsize,
            response_bytes_max: made.fore_chan.maxresponsesize,
        });
        self.lease.renewed = now;
        self.lease.is_renewing = false;
        let has_reclaimed = client.has_reclaimed;
        self.callbacks.reset();
        // The server bound the connection of the first CREATE_SESSION, which may have ended, and
        // repeated its reply over this one without binding it.
        if self.has_new_link
            && let Some(place) = self.calls.any_up()
        {
            self.bind(now, place);
        }
        if has_reclaimed { self.ready(now) } else { self.begin_reclaim(now) }
    }

    /// Sends RECLAIM_COMPLETE.
    pub(super) fn complete_reclaim(&mut self, now: Duration) {
        self.phase = ClientPhase::Completing;
        let call = CompoundCall::new(self.minor, &self.settings.credential);
        let request = call.op(op::RECLAIM_COMPLETE, &false).once().finish();
        self.insert(PendingRequest::in_session(request, Job::ReclaimComplete, now));
        self.dispatch(now);
    }

    /// Ends a request whose reply was accepted.
    pub(super) fn finish(&mut self, now: Duration, id: u64, reply: CompoundReply) {
        let Some(job) = self.requests.get(&id).map(|pending| pending.job.clone()) else { return };
        match job {
            Job::ReclaimComplete => {
                self.remove(id);
                self.completed(now);
            }
            Job::Renew => {
                self.remove(id);
                self.lease.is_renewing = false;
            }
            Job::Open(_) => self.open_ended(now, id, reply),
            Job::Close(key, closed) => self.close_ended(now, id, (&key, closed), reply.status),
            Job::Lock(_) => self.lock_ended(now, id, &reply),
            Job::Delegate(task) => self.directory_ended(now, (id, &task), reply),
            Job::Return(file) => self.return_ended(now, id, &file),
            Job::Test(stateids) => {
                self.remove(id);
                self.tested(now, &stateids, &reply);
            }
            Job::Free => drop(self.remove(id)),
            _ => self.answer(id, Ok(SessionAnswer::Reply(reply))),
        }
    }

    fn completed(&mut self, now: Duration) {
        // An error means that it was already complete (COMPLETE_ALREADY).
        if let Some(client) = &mut self.client {
            client.has_reclaimed = true;
        }
        self.ready(now);
    }

    fn ready(&mut self, now: Duration) {
        self.phase = ClientPhase::Ready;
        self.outputs.push_back(MachineOutput::Ready);
        self.dispatch(now);
    }

    /// Handles the end of the session at the server. Requests under way are sent again in the next
    /// session.
    pub(super) fn lose_session(&mut self, now: Duration, status: Nfsstat4) {
        self.note(Notice::SessionLost(status));
        self.session = None;
        self.lease.is_renewing = false;
        self.testing = StateTest::default();
        let in_slots: Vec<u64> = self
            .requests
            .iter()
            .filter(|(_, pending)| pending.slot().is_some())
            .map(|(id, _)| *id)
            .collect();
        in_slots.into_iter().for_each(|id| self.take_out_of_slot(id));
        self.create_session(now);
    }

    /// Removes a request from its slot of a session that has ended.
    fn take_out_of_slot(&mut self, id: u64) {
        self.calls.forget(id);
        let Some(pending) = self.requests.get_mut(&id) else { return };
        let (retry_at, is_over) = (pending.retry_at(), pending.is_forsaken);
        let belongs = matches!(pending.job, Job::Renew | Job::ReclaimComplete | Job::Test(_));
        let is_over = is_over && !pending.job.has_turn();
        if let Some(at) = retry_at {
            self.delayed.remove(at, id);
        }
        pending.stage = RequestStage::Waiting;
        if is_over || belongs {
            self.remove(id);
        } else {
            self.waiting.insert(id);
        }
    }

    /// Binds a connection to the session, so that the server can send callbacks over it.
    pub(super) fn bind(&mut self, now: Duration, place: LinkPlace) {
        let Some(session) = &self.session else { return };
        let (sessid, dir) = (session.sessionid, channel_dir::FORE_OR_BOTH);
        let job = Job::Bind(place, sessid);
        if self.requests.values().any(|pending| pending.job == job) {
            return;
        }
        let arguments = BindConnToSession4 { sessid, dir, use_conn_in_rdma_mode: false };
        let record = self.control(op::BIND_CONN_TO_SESSION, &arguments);
        self.send_control(now, record, job);
    }

    fn bound(&mut self, now: Duration, to: &Sessionid4, reply: Result<CompoundReply, RpcRefusal>) {
        let Ok(reply) = reply else { return };
        let is_lost = matches!(reply.status, Nfsstat4::BadSession | Nfsstat4::DeadSession);
        if is_lost && self.session.as_ref().is_some_and(|session| session.sessionid == *to) {
            self.lose_session(now, reply.status);
        }
    }

    /// Handles the status flags of SEQUENCE.
    pub(super) fn heed_flags(&mut self, now: Duration, flags: u32) {
        let down = seq4_status::CB_PATH_DOWN | seq4_status::CB_PATH_DOWN_SESSION;
        if flags & down != 0
            && let Some(place) = self.calls.any_up()
        {
            self.bind(now, place);
        }
        self.heed_revocations(now, flags);
        if flags & seq4_status::LEASE_MOVED != 0 && !std::mem::replace(&mut self.has_moved, true) {
            self.note(Notice::LeaseMoved);
        }
    }

    /// The time at which the lease must be renewed.
    pub(super) fn renew_at(&self) -> Option<Duration> {
        let is_due = self.phase == ClientPhase::Ready && !self.lease.is_renewing;
        is_due.then(|| self.lease.renewed + self.lease.length / RENEWAL_PART)
    }

    /// Renews the lease if it is time.
    pub(super) fn renew(&mut self, now: Duration) {
        if self.renew_at().is_some_and(|at| at <= now) {
            self.renew_now(now);
        }
    }

    /// Renews the lease, unless a renewal is under way.
    pub(super) fn renew_now(&mut self, now: Duration) {
        if !self.lease.is_renewing {
            self.lease.is_renewing = true;
            let request = CompoundCall::new(self.minor, &self.settings.credential).finish();
            self.insert(PendingRequest::in_session(request, Job::Renew, now));
        }
    }
}

/// Most bytes of a callback, and of its cached reply.
const CALLBACK_BYTES: (u32, u32) = (CALLBACK_BYTES_MAX, CALLBACK_BYTES_MAX);

/// Pause before a client that could not be introduced again retries.
const REINTRODUCTION: Duration = Duration::from_secs(5);

fn known_client(known: &ExchangeId4resok<'_>) -> KnownClient {
    KnownClient {
        clientid: known.clientid,
        sequence: known.sequenceid,
        has_reclaimed: false,
        server: known.server_owner.major_id.0.into(),
    }
}

/// Returns whether a request should be repeated after a pause. A connection that is not bound yet
/// will be: BIND_CONN_TO_SESSION is sent as soon as it is made.
const fn is_later(status: Nfsstat4) -> bool {
    matches!(status, Nfsstat4::Delay | Nfsstat4::Grace | Nfsstat4::ConnNotBoundToSession)
}

fn channel((bytes, kept): (u32, u32), maxoperations: u32, maxrequests: u32) -> ChannelAttrs4 {
    ChannelAttrs4 {
        headerpadsize: 0,
        maxrequestsize: bytes,
        maxresponsesize: bytes,
        maxresponsesize_cached: kept,
        maxoperations,
        maxrequests,
        rdma_ird: None,
    }
}

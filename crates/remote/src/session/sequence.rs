//! Requests in slots: how they are sent, and how their replies are handled (RFC 8881, 2.10.6 and
//! 18.46).

use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{Nfsstat4, Sequence4args, Sequence4resok, operation as op};
use comity_xdr::Encoder;

use super::faults::is_fault;
use super::job::Job;
use super::machine::ClientMachine;
use super::pending::{RequestForm, RequestStage};
use super::slots::SlotUse;
use crate::calls::LinkPlace;
use crate::compound::{CompoundReply, OpFailure};
use crate::machine::{CallFailure, Notice, pause};
use crate::rpc::RpcRefusal;

/// Bytes of the arguments of SEQUENCE.
const SEQUENCE_BYTES: usize = 32;

impl ClientMachine {
    /// Assigns a slot to a request and sends it.
    pub(super) fn send_in_slot(&mut self, now: Duration, id: u64) {
        let Some(session) = &mut self.session else { return };
        let Some(slot) = session.slots.take() else { return };
        let (sessionid, highest_slotid) = (session.sessionid, session.slots.highest_used());
        let Some(pending) = self.requests.get_mut(&id) else { return };
        let RequestForm::InSession(form) = &pending.form else { return };
        let SlotUse { slot: slotid, sequenceid } = slot;
        let cachethis = form.is_kept;
        let arguments = Sequence4args { sessionid, sequenceid, slotid, highest_slotid, cachethis };
        let mut encoder = Encoder::new();
        encoder.value(&arguments);
        let record = Arc::make_mut(&mut pending.record);
        let place = record.get_mut(form.sequence_at..form.sequence_at + SEQUENCE_BYTES);
        if let Some(place) = place {
            place.copy_from_slice(encoder.bytes());
        }
        (pending.stage, pending.sent) = (RequestStage::InSlot(slot), now);
        self.transmit(now, id, None);
    }

    /// Handles the reply to a request.
    pub(super) fn settle(&mut self, now: Duration, from: (u64, LinkPlace), bytes: Vec<u8>) {
        let (id, place) = from;
        let Some(pending) = self.requests.get(&id) else { return };
        let is_alone = matches!(pending.form, RequestForm::Alone);
        match CompoundReply::parse(bytes) {
            Err(refusal) if is_alone => self.settle_control(now, id, Err(refusal)),
            Ok(reply) if is_alone => self.settle_control(now, id, Ok(reply)),
            Err(refusal) => self.refused(now, id, refusal),
            Ok(reply) => self.settle_in_slot(now, (id, place), reply),
        }
    }

    /// Handles a request that the RPC layer refused, or whose reply is malformed. In the second
    /// case the server may have executed it, so its slot counts as used.
    fn refused(&mut self, now: Duration, id: u64, refusal: RpcRefusal) {
        let may_have_begun = matches!(refusal, RpcRefusal::Malformed(_));
        self.leave_slot(id, may_have_begun);
        self.note(Notice::Nonsense(refusal));
        self.fail(now, id, CallFailure::Refused(refusal));
    }

    fn settle_in_slot(
        &mut self,
        now: Duration,
        (id, place): (u64, LinkPlace),
        mut reply: CompoundReply,
    ) {
        match reply.first::<Sequence4resok>(op::SEQUENCE) {
            Ok(sequence) => {
                self.follow_sequence(now, id, &sequence);
                self.leave_slot(id, true);
                self.judge(now, id, reply);
            }
            Err(OpFailure::Status(status)) => self.not_begun(now, (id, place), status),
            Err(OpFailure::Malformed(reason)) => self.refused(now, id, reason.into()),
        }
    }

    /// Ends a request that has no valid reply. The client's state stays as it was.
    fn fail(&mut self, now: Duration, id: u64, failure: CallFailure) {
        let Some(job) = self.requests.get(&id).map(|pending| pending.job.clone()) else { return };
        self.answer(id, Err(failure));
        match job {
            Job::Open(task) => self.open_failed(now, &task),
            Job::Close(key, _) => self.closed(now, id, &key),
            Job::Lock(task) => self.lock_turn_failed(now, &task),
            Job::Return(file) => self.return_ended(now, id, &file),
            Job::Test(_) => self.test_lost(),
            Job::ReclaimComplete => self.complete_reclaim(now),
            Job::Renew => self.lease.is_renewing = false,
            _ => {}
        }
    }

    /// Releases the slot of a request.
    pub(super) fn leave_slot(&mut self, id: u64, was_begun: bool) {
        let Some(pending) = self.requests.get_mut(&id) else { return };
        let Some(slot) = pending.slot() else { return };
        pending.stage = RequestStage::Waiting;
        if let Some(session) = &mut self.session {
            session.slots.give_back(slot.slot, was_begun);
        }
    }

    /// Applies what SEQUENCE returns: slot limits, lease and status flags.
    fn follow_sequence(&mut self, now: Duration, id: u64, sequence: &Sequence4resok) {
        let Some(pending) = self.requests.get(&id) else { return };
        let (Some(slot), sent) = (pending.slot(), pending.sent) else { return };
        if let Some(session) = &mut self.session {
            let (highest, target) = (sequence.highest_slotid, sequence.target_highest_slotid);
            session.slots.follow(slot.slot, highest, target);
        }
        self.lease.renewed = self.lease.renewed.max(sent);
        self.heed_flags(now, sequence.status_flags);
    }

    /// Handles a failure of SEQUENCE: no operation of the request was executed.
    fn not_begun(&mut self, now: Duration, (id, place): (u64, LinkPlace), status: Nfsstat4) {
        match status {
            Nfsstat4::Delay => self.wait_in_slot(now, id),
            Nfsstat4::ConnNotBoundToSession => {
                self.leave_slot(id, false);
                self.bind(now, place);
                self.put_off(now, id);
            }
            Nfsstat4::SeqFalseRetry => {
                self.leave_slot(id, true);
                self.send_again(id);
            }
            Nfsstat4::BadSlot | Nfsstat4::BadHighSlot => {
                self.refuse_slot(id);
                self.put_off(now, id);
            }
            Nfsstat4::ReqTooBig | Nfsstat4::TooManyOps | Nfsstat4::RepTooBig => {
                self.leave_slot(id, false);
                self.fail(now, id, CallFailure::Refused(RpcRefusal::GarbageArguments));
            }
            status => self.lose_session(now, status),
        }
    }

    /// The server is still executing the request of this slot, which was sent again over a new
    /// connection; sends it once more after a pause.
    fn wait_in_slot(&mut self, now: Duration, id: u64) {
        let Some(pending) = self.requests.get(&id) else { return };
        let Some(slot) = pending.slot() else { return };
        let at = now + pause(pending.delays);
        self.delay(at, id, RequestStage::SlotDelayed(slot, at));
    }

    fn refuse_slot(&mut self, id: u64) {
        let Some(slot) = self.requests.get(&id).and_then(|pending| pending.slot()) else { return };
        self.leave_slot(id, false);
        if let Some(session) = &mut self.session {
            session.slots.refuse(slot.slot);
        }
    }

    /// Judges the reply to a request: it is retried now or later, or it ends.
    fn judge(&mut self, now: Duration, id: u64, reply: CompoundReply) {
        let Some(pending) = self.requests.get(&id) else { return };
        let can_repeat = pending.can_repeat(reply.count) && !pending.is_forsaken;
        match reply.status {
            Nfsstat4::Delay | Nfsstat4::Grace if can_repeat => self.put_off(now, id),
            Nfsstat4::RepTooBigToCache if can_repeat => self.send_unkept(id),
            Nfsstat4::RetryUncachedRep if can_repeat => self.send_again(id),
            status if is_fault(status) && can_repeat => self.fault(now, id, reply),
            _ => self.finish(now, id, reply),
        }
    }

    /// Sends a request again, in any slot.
    pub(super) fn send_again(&mut self, id: u64) {
        if let Some(pending) = self.requests.get_mut(&id) {
            pending.stage = RequestStage::Waiting;
            self.waiting.insert(id);
        }
    }

    /// Sends a request again, without asking the server to cache the reply.
    fn send_unkept(&mut self, id: u64) {
        if let Some(RequestForm::InSession(form)) =
            self.requests.get_mut(&id).map(|pending| &mut pending.form)
        {
            form.is_kept = false;
        }
        self.send_again(id);
    }

    /// Sends a request again after a pause that grows each time.
    pub(super) fn put_off(&mut self, now: Duration, id: u64) {
        let Some(pending) = self.requests.get(&id) else { return };
        let at = now + pause(pending.delays);
        self.delay(at, id, RequestStage::Delayed(at));
    }
}

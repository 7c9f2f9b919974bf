//! Callbacks (RFC 8881, 20): calls by the server over a connection that the client made. Each is
//! answered at once; a repeated one gets the cached reply.

use std::time::Duration;

use comity_proto::nfs4::callback::{
    CbCompoundHead, CbCompoundResultHead, CbGetattr4args, CbGetattr4resok, CbNotifyDeviceid4args,
    CbNotifyLock4args, CbRecall4args, CbRecallAny4args, CbRecallSlot4args, CbResultHead,
    CbSequence4args, CbSequence4resok, VERSION, operation, procedure, recall_any,
};
use comity_proto::nfs4::{Bitmap4, Nfsstat4, attribute, operation as op};
use comity_rpc::{Call, ReplyVerifier, accepted};
use comity_vfs::DelegationKind;
use comity_xdr::{Decoder, Encoder, Malformed, Opaque};

use super::control::CALLBACK_PROGRAM;
use super::job::Job;
use super::machine::ClientMachine;
use crate::calls::LinkPlace;
use crate::limits::{CALLBACK_OPERATIONS_MAX, CALLBACK_SLOTS};
use crate::server_handle::ServerHandle;

/// The slots of the backchannel, each with its last reply.
#[derive(Debug, Default)]
pub(super) struct CallbackSlots(Vec<CallbackSlot>);

#[derive(Debug, Default, Clone)]
struct CallbackSlot {
    sequenceid: u32,
    /// The cached reply, from its status on.
    answer: Vec<u8>,
}

/// The slot and sequence number of a new callback.
#[derive(Debug, Clone, Copy)]
struct CallbackTurn {
    slot: usize,
    sequenceid: u32,
}

/// The results of the operations executed so far.
struct CallbackResults {
    encoder: Encoder,
    count: u32,
    status: Nfsstat4,
}

impl CallbackResults {
    const fn new() -> Self {
        Self { encoder: Encoder::new(), count: 0, status: Nfsstat4::Ok }
    }

    fn add(&mut self, operation: u32, status: Nfsstat4) {
        self.encoder.value(&CbResultHead { operation, status: status as u32 });
        (self.count, self.status) = (self.count + 1, status);
    }

    /// The reply from its status on.
    fn whole(&self, tag: &[u8]) -> Vec<u8> {
        let mut encoder = Encoder::new();
        let (status, results) = (self.status as u32, self.count);
        encoder.value(&CbCompoundResultHead { status, tag: Opaque(tag), results });
        encoder.raw(self.encoder.bytes());
        encoder.bytes().to_vec()
    }
}

impl ClientMachine {
    /// Answers a call by the server.
    pub(super) fn heed_call(&mut self, now: Duration, place: LinkPlace, bytes: &[u8]) {
        // A malformed call has no xid to reply to.
        let Ok(call) = Call::parse(bytes) else { return };
        let (header, verifier) = (call.header, ReplyVerifier::Empty);
        let mut reply = Encoder::new();
        let start = reply.begin_record();
        match (header.program, header.version, header.procedure) {
            (CALLBACK_PROGRAM, VERSION, procedure::CB_NULL) => {
                accepted::success(&mut reply, header.xid, &verifier);
            }
            (CALLBACK_PROGRAM, VERSION, procedure::CB_COMPOUND) => {
                match self.callback_compound(now, call.arguments) {
                    Ok(answer) => {
                        accepted::success(&mut reply, header.xid, &verifier);
                        reply.raw(&answer);
                    }
                    Err(_) => accepted::garbage_args(&mut reply, header.xid, &verifier),
                }
            }
            (CALLBACK_PROGRAM, VERSION, _) => {
                accepted::proc_unavail(&mut reply, header.xid, &verifier);
            }
            (CALLBACK_PROGRAM, ..) => {
                accepted::prog_mismatch(&mut reply, header.xid, &verifier, VERSION, VERSION);
            }
            _ => accepted::prog_unavail(&mut reply, header.xid, &verifier),
        }
        reply.end_record(start);
        self.calls.answer(place, reply.bytes().to_vec());
    }

    fn callback_compound(&mut self, now: Duration, arguments: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut decoder = Decoder::new(arguments);
        let head: CbCompoundHead<'_> = decoder.value()?;
        let mut results = CallbackResults::new();
        if head.minorversion != self.minor {
            results.status = Nfsstat4::MinorVersMismatch;
            return Ok(results.whole(head.tag.0));
        }
        if head.operations > CALLBACK_OPERATIONS_MAX {
            results.status = Nfsstat4::TooManyOps;
            return Ok(results.whole(head.tag.0));
        }
        let mut turn = None;
        for number in 0..head.operations {
            let operation: u32 = decoder.value()?;
            match (number, operation) {
                (0, operation::CB_SEQUENCE) => {
                    let sequence: CbSequence4args = decoder.value()?;
                    match self.callback_sequence(&sequence) {
                        Ok(begun) => {
                            results.add(operation, Nfsstat4::Ok);
                            results.encoder.value(&sequence_result(&sequence));
                            turn = Some(begun);
                        }
                        Err(CallbackRefusal::Repeated(answer)) => return Ok(answer),
                        Err(CallbackRefusal::Status(status)) => results.add(operation, status),
                    }
                }
                (0, _) => results.add(operation, Nfsstat4::OpNotInSession),
                (_, operation::CB_SEQUENCE) => results.add(operation, Nfsstat4::SequencePos),
                _ => self.callback_operation(now, operation, &mut decoder, &mut results)?,
            }
            if results.status != Nfsstat4::Ok {
                break;
            }
        }
        let answer = results.whole(head.tag.0);
        if let Some(turn) = turn {
            self.callbacks.keep(turn, &answer);
        }
        Ok(answer)
    }

    fn callback_sequence(
        &self,
        sequence: &CbSequence4args,
    ) -> Result<CallbackTurn, CallbackRefusal> {
        let is_ours =
            |session: &super::machine::LiveSession| session.sessionid == sequence.sessionid;
        if !self.session.as_ref().is_some_and(is_ours) {
            return Err(CallbackRefusal::Status(Nfsstat4::BadSession));
        }
        let turn = self.callbacks.begin(sequence)?;
        // RFC 8881, 2.10.6.3: the callback refers to a request whose reply has not arrived yet.
        let refers = sequence.referring_call_lists.0.iter().any(|list| {
            list.sessionid == sequence.sessionid
                && list.calls.0.iter().any(|call| self.is_in_slot(call.slotid, call.sequenceid))
        });
        if refers { Err(CallbackRefusal::Status(Nfsstat4::Delay)) } else { Ok(turn) }
    }

    fn is_in_slot(&self, slot: u32, sequenceid: u32) -> bool {
        self.requests
            .values()
            .filter_map(|pending| pending.slot())
            .any(|used| used.slot == slot && used.sequenceid == sequenceid)
    }

    fn callback_operation(
        &mut self,
        now: Duration,
        operation: u32,
        decoder: &mut Decoder<'_>,
        results: &mut CallbackResults,
    ) -> Result<(), Malformed> {
        let status = match operation {
            operation::CB_GETATTR => return self.callback_getattr(decoder, results),
            operation::CB_RECALL => self.callback_recall(now, &decoder.value()?),
            operation::CB_RECALL_ANY => self.callback_recall_any(now, decoder.value()?),
            operation::CB_RECALL_SLOT => self.callback_recall_slot(now, decoder.value()?),
            operation::CB_NOTIFY_LOCK => {
                let notice: CbNotifyLock4args<'_> = decoder.value()?;
                self.lock_may_be_free(notice.fh.0, notice.lock_owner.owner.0);
                Nfsstat4::Ok
            }
            operation::CB_NOTIFY => self.callback_notify(now, &decoder.value()?),
            operation::CB_NOTIFY_DEVICEID => {
                // This client uses no devices of pNFS, so it has none to forget.
                decoder.value::<CbNotifyDeviceid4args<'_>>()?;
                Nfsstat4::Ok
            }
            operation::CB_RECALLABLE_OBJ_AVAIL => {
                decoder.value::<bool>()?;
                Nfsstat4::Ok
            }
            operation::CB_WANTS_CANCELLED => {
                decoder.value::<bool>()?;
                decoder.value::<bool>()?;
                Nfsstat4::Ok
            }
            operation::CB_LAYOUTRECALL => Nfsstat4::NoMatchingLayout,
            operation::CB_PUSH_DELEG => Nfsstat4::RejectDeleg,
            operation::CB_OFFLOAD => Nfsstat4::BadStateid,
            _ => {
                results.add(op::ILLEGAL, Nfsstat4::OpIllegal);
                return Ok(());
            }
        };
        results.add(operation, status);
        Ok(())
    }

    fn callback_recall(&mut self, now: Duration, recall: &CbRecall4args<'_>) -> Nfsstat4 {
        let is_it =
            |held: &super::file_states::HeldDelegation| held.stateid.other == recall.stateid.other;
        match ServerHandle::new(recall.fh.0) {
            Some(file) if self.states.delegation(&file).is_some_and(is_it) => {
                self.recalled(now, &file, recall.truncate);
                Nfsstat4::Ok
            }
            // The delegation may come with a reply that has not arrived yet.
            _ if self.may_be_delegated() => Nfsstat4::Delay,
            _ => Nfsstat4::BadStateid,
        }
    }

    /// Returns whether a request is under way whose reply may bring a delegation.
    pub(super) fn may_be_delegated(&self) -> bool {
        let brings = |job: &Job| matches!(job, Job::Open(_) | Job::Delegate(_));
        self.requests.values().any(|pending| brings(&pending.job) && pending.slot().is_some())
    }

    fn callback_recall_any(&mut self, now: Duration, wish: CbRecallAny4args) -> Nfsstat4 {
        let ours = [
            recall_any::READ_DELEGATIONS,
            recall_any::WRITE_DELEGATIONS,
            recall_any::DIR_DELEGATIONS,
        ];
        if ours.iter().any(|kind| wish.type_mask.contains(*kind)) {
            self.keep_few(now, wish.objects_to_keep as usize);
        }
        Nfsstat4::Ok
    }

    fn callback_recall_slot(&mut self, now: Duration, wish: CbRecallSlot4args) -> Nfsstat4 {
        if let Some(session) = &mut self.session {
            session.slots.set_target(wish.target_highest_slotid);
        }
        // Renew now: the next request tells the server that this callback was received.
        self.renew_now(now);
        Nfsstat4::Ok
    }

    /// Encodes size and change attribute of a file under a write delegation (RFC 8881, 10.4.3).
    fn callback_getattr(
        &self,
        decoder: &mut Decoder<'_>,
        results: &mut CallbackResults,
    ) -> Result<(), Malformed> {
        let question: CbGetattr4args<'_> = decoder.value()?;
        let held = ServerHandle::new(question.fh.0);
        let held = held.and_then(|file| self.states.delegation(&file));
        let Some(held) = held.filter(|held| held.kind == DelegationKind::Write) else {
            results.add(operation::CB_GETATTR, Nfsstat4::BadHandle);
            return Ok(());
        };
        let known = match (held.known, held.unwritten) {
            // A change attribute above the server's means that the file was modified here.
            (Some((_, change)), Some(size)) => Some((size, change.wrapping_add(1))),
            (known, _) => known,
        };
        let mut attrmask = Bitmap4::EMPTY;
        let mut values = Encoder::new();
        if let Some((size, change)) = known {
            for (number, value) in [(attribute::CHANGE, change), (attribute::SIZE, size)] {
                if question.attr_request.contains(number) {
                    attrmask.insert(number);
                    values.value(&value);
                }
            }
        }
        results.add(operation::CB_GETATTR, Nfsstat4::Ok);
        let attr_vals = Opaque(values.bytes());
        results.encoder.value(&CbGetattr4resok { attrmask, attr_vals });
        Ok(())
    }
}

/// The reason why a callback is not executed.
enum CallbackRefusal {
    /// It is a retry; this is the cached reply.
    Repeated(Vec<u8>),
    /// CB_SEQUENCE failed.
    Status(Nfsstat4),
}

impl CallbackSlots {
    /// Clears the slots for a new session.
    pub(super) fn reset(&mut self) {
        self.0 = vec![CallbackSlot::default(); CALLBACK_SLOTS as usize];
    }

    fn begin(&self, sequence: &CbSequence4args) -> Result<CallbackTurn, CallbackRefusal> {
        let slot = sequence.slotid as usize;
        let Some(known) = self.0.get(slot) else {
            return Err(CallbackRefusal::Status(Nfsstat4::BadSlot));
        };
        if sequence.sequenceid == known.sequenceid.wrapping_add(1) {
            return Ok(CallbackTurn { slot, sequenceid: sequence.sequenceid });
        }
        if sequence.sequenceid == known.sequenceid && !known.answer.is_empty() {
            return Err(CallbackRefusal::Repeated(known.answer.clone()));
        }
        Err(CallbackRefusal::Status(Nfsstat4::SeqMisordered))
    }

    fn keep(&mut self, turn: CallbackTurn, answer: &[u8]) {
        if let Some(slot) = self.0.get_mut(turn.slot) {
            slot.sequenceid = turn.sequenceid;
            slot.answer = answer.to_vec();
        }
    }
}

const fn sequence_result(sequence: &CbSequence4args) -> CbSequence4resok {
    CbSequence4resok {
        sessionid: sequence.sessionid,
        sequenceid: sequence.sequenceid,
        slotid: sequence.slotid,
        highest_slotid: CALLBACK_SLOTS - 1,
        target_highest_slotid: CALLBACK_SLOTS - 1,
    }
}

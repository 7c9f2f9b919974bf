use std::sync::Arc;
use std::time::Duration;

use super::job::Job;
use super::slots::SlotUse;
use crate::calls::CallBytes;
use crate::compound::{CompoundRequest, StatePlace};

/// A request that has not ended.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) record: CallBytes,
    pub(super) form: RequestForm,
    pub(super) job: Job,
    pub(super) stage: RequestStage,
    /// The time from which on its caller has waited.
    pub(super) since: Duration,
    /// The time at which it was sent last.
    pub(super) sent: Duration,
    /// The time at which it fails, if it must.
    pub(super) deadline: Option<Duration>,
    /// Times that the server has put it off.
    pub(super) delays: u32,
    /// Times that it was done under state that the server did not know.
    pub(super) faults: u32,
    /// True if a caller waits for the outcome.
    pub(super) has_caller: bool,
    /// True if the caller waits no more.
    pub(super) is_forsaken: bool,
}

/// The form of a request.
#[derive(Debug)]
pub(super) enum RequestForm {
    /// A COMPOUND in a slot.
    InSession(InSession),
    /// A COMPOUND outside of any session.
    Alone,
}

/// The parts of a COMPOUND in a slot that are filled in when it is sent.
#[derive(Debug)]
pub(super) struct InSession {
    pub(super) sequence_at: usize,
    pub(super) places: Vec<StatePlace>,
    pub(super) changed_from: Option<u32>,
    /// True if the server is asked to keep the reply for a retry.
    pub(super) is_kept: bool,
}

/// The stage of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestStage {
    /// It waits for a slot, or for the client to be ready.
    Waiting,
    /// It waits until an operation on an open has ended.
    Blocked,
    /// The server put it off until this time.
    Delayed(Duration),
    /// It was sent in a slot.
    InSlot(SlotUse),
    /// It was sent in a slot whose request the server is still at; it is asked again at this time.
    SlotDelayed(SlotUse, Duration),
    /// It was sent outside of any session.
    Sent,
}

impl PendingRequest {
    pub(super) fn in_session(request: CompoundRequest, job: Job, since: Duration) -> Self {
        let CompoundRequest { record, sequence_at, places, changed_from } = request;
        let is_kept = changed_from.is_some();
        let form = RequestForm::InSession(InSession { sequence_at, places, changed_from, is_kept });
        Self::new(record, form, (job, since))
    }

    /// A request whose COMPOUND is put together when it is its turn.
    pub(super) fn unwritten(job: Job, since: Duration) -> Self {
        let form =
            InSession { sequence_at: 0, places: Vec::new(), changed_from: None, is_kept: false };
        Self::new(Vec::new(), RequestForm::InSession(form), (job, since))
    }

    /// Writes its COMPOUND.
    pub(super) fn write(&mut self, request: CompoundRequest) {
        let CompoundRequest { record, sequence_at, places, changed_from } = request;
        let is_kept = changed_from.is_some();
        self.form =
            RequestForm::InSession(InSession { sequence_at, places, changed_from, is_kept });
        self.record = Arc::new(record);
    }

    pub(super) fn alone(record: Vec<u8>, job: Job, since: Duration) -> Self {
        Self::new(record, RequestForm::Alone, (job, since))
    }

    fn new(record: Vec<u8>, form: RequestForm, (job, since): (Job, Duration)) -> Self {
        let (record, stage) = (Arc::new(record), RequestStage::Waiting);
        Self {
            record,
            form,
            job,
            stage,
            since,
            sent: since,
            deadline: None,
            delays: 0,
            faults: 0,
            has_caller: false,
            is_forsaken: false,
        }
    }

    /// The slot that it holds.
    pub(super) const fn slot(&self) -> Option<SlotUse> {
        match self.stage {
            RequestStage::InSlot(slot) | RequestStage::SlotDelayed(slot, _) => Some(slot),
            RequestStage::Waiting
            | RequestStage::Blocked
            | RequestStage::Delayed(_)
            | RequestStage::Sent => None,
        }
    }

    /// The time at which it is to be sent again.
    pub(super) const fn retry_at(&self) -> Option<Duration> {
        match self.stage {
            RequestStage::Delayed(at) | RequestStage::SlotDelayed(_, at) => Some(at),
            RequestStage::Waiting
            | RequestStage::Blocked
            | RequestStage::InSlot(_)
            | RequestStage::Sent => None,
        }
    }

    /// Returns whether it is at the server and changes what must not be changed twice.
    pub(super) fn may_have_changed(&self) -> bool {
        let changes = match &self.form {
            RequestForm::InSession(form) => form.changed_from.is_some(),
            RequestForm::Alone => false,
        };
        changes && self.slot().is_some()
    }

    /// Returns whether it can be done again after so many results, of which the last is a failure:
    /// nothing was changed that must not be changed twice.
    pub(super) fn can_repeat(&self, results: u32) -> bool {
        match &self.form {
            RequestForm::InSession(form) => form.changed_from.is_none_or(|from| results <= from),
            RequestForm::Alone => true,
        }
    }
}

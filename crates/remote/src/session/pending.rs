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
    /// The time since when its caller has waited.
    pub(super) since: Duration,
    /// The time at which it was last sent.
    pub(super) sent: Duration,
    /// The time at which it times out, if it may.
    pub(super) deadline: Option<Duration>,
    /// Number of times that the server replied DELAY.
    pub(super) delays: u32,
    /// Number of times that it failed because the server did not know its state.
    pub(super) faults: u32,
    /// True if a caller waits for the outcome.
    pub(super) has_caller: bool,
    /// True if its caller gave up.
    pub(super) is_forsaken: bool,
}

/// The kind of a request.
#[derive(Debug)]
pub(super) enum RequestForm {
    /// A COMPOUND in a slot of the session.
    InSession(InSession),
    /// A COMPOUND without a session.
    Alone,
}

/// The parts of a COMPOUND in a slot that are set when it is sent.
#[derive(Debug)]
pub(super) struct InSession {
    pub(super) sequence_at: usize,
    pub(super) places: Vec<StatePlace>,
    pub(super) changed_from: Option<u32>,
    /// True if the server is asked to cache the reply.
    pub(super) is_kept: bool,
}

/// The progress of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestStage {
    /// It waits for a slot, or for the phase `Ready`.
    Waiting,
    /// It waits for the end of an operation on an open.
    Blocked,
    /// The server replied DELAY; it is sent again at this time.
    Delayed(Duration),
    /// It was sent in a slot.
    InSlot(SlotUse),
    /// It was sent in a slot, and the server is still executing it; it is sent again at this time.
    SlotDelayed(SlotUse, Duration),
    /// It was sent without a session.
    Sent,
}

impl PendingRequest {
    pub(super) fn in_session(request: CompoundRequest, job: Job, since: Duration) -> Self {
        let CompoundRequest { record, sequence_at, places, changed_from } = request;
        let is_kept = changed_from.is_some();
        let form = RequestForm::InSession(InSession { sequence_at, places, changed_from, is_kept });
        Self::new(record, form, (job, since))
    }

    /// Makes a request whose COMPOUND is built when it is sent.
    pub(super) fn unwritten(job: Job, since: Duration) -> Self {
        let form =
            InSession { sequence_at: 0, places: Vec::new(), changed_from: None, is_kept: false };
        Self::new(Vec::new(), RequestForm::InSession(form), (job, since))
    }

    /// Sets its COMPOUND.
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

    /// The slot that it occupies.
    pub(super) const fn slot(&self) -> Option<SlotUse> {
        match self.stage {
            RequestStage::InSlot(slot) | RequestStage::SlotDelayed(slot, _) => Some(slot),
            RequestStage::Waiting
            | RequestStage::Blocked
            | RequestStage::Delayed(_)
            | RequestStage::Sent => None,
        }
    }

    /// The time at which it is sent again.
    pub(super) const fn retry_at(&self) -> Option<Duration> {
        match self.stage {
            RequestStage::Delayed(at) | RequestStage::SlotDelayed(_, at) => Some(at),
            RequestStage::Waiting
            | RequestStage::Blocked
            | RequestStage::InSlot(_)
            | RequestStage::Sent => None,
        }
    }

    /// Returns whether it has been sent and makes a change that must not be made twice.
    pub(super) fn may_have_changed(&self) -> bool {
        let changes = match &self.form {
            RequestForm::InSession(form) => form.changed_from.is_some(),
            RequestForm::Alone => false,
        };
        changes && self.slot().is_some()
    }

    /// Returns whether it can be retried after `results` results, of which the last is a failure:
    /// nothing was changed that must not be changed twice.
    pub(super) fn can_repeat(&self, results: u32) -> bool {
        match &self.form {
            RequestForm::InSession(form) => form.changed_from.is_none_or(|from| results <= from),
            RequestForm::Alone => true,
        }
    }
}

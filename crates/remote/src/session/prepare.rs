//! Preparing a request just before it is sent: stateids are filled in, and operations on one open
//! are sent one at a time.

use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::Stateid4;
use comity_xdr::Encoder;

use super::file_states::{IoState, OpenKey};
use super::job::Job;
use super::machine::ClientMachine;
use super::pending::RequestForm;
use crate::compound::{StatePlace, StatePurpose, StateUse};
use crate::limits::OPENS_MAX;
use crate::machine::CallFailure;

/// Bytes of a stateid.
const STATEID_BYTES: usize = 16;

/// The outcome of preparing a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    /// The request can be sent.
    Ready,
    /// An operation on this open must end first.
    Blocked(OpenKey),
    /// It need not be sent.
    Over,
}

impl ClientMachine {
    /// Prepares a request to be sent.
    pub(super) fn prepare(&mut self, now: Duration, id: u64) -> Readiness {
        let Some(job) = self.requests.get(&id).map(|pending| pending.job.clone()) else {
            return Readiness::Over;
        };
        match job {
            Job::Verb => self.prepare_verb(now, id),
            Job::Open(task) => self.prepare_open(now, id, &task),
            Job::Return(file) => self.prepare_return(id, &file),
            Job::Close(key, _) => self.prepare_close(now, id, &key),
            Job::Lock(task) => self.prepare_lock(now, id, &task),
            _ => Readiness::Ready,
        }
    }

    fn prepare_verb(&mut self, now: Duration, id: u64) -> Readiness {
        let places = |pending: &mut super::pending::PendingRequest| match &mut pending.form {
            RequestForm::InSession(form) => std::mem::take(&mut form.places),
            RequestForm::Alone => Vec::new(),
        };
        let Some(mut places) = self.requests.get_mut(&id).map(places) else {
            return Readiness::Over;
        };
        let readiness = self.choose_states(now, &mut places);
        if readiness == Readiness::Over {
            self.answer(id, Err(CallFailure::StateLost));
            return readiness;
        }
        if let Some(pending) = self.requests.get_mut(&id) {
            if readiness == Readiness::Ready {
                let record = Arc::make_mut(&mut pending.record);
                places.iter().for_each(|place| write_stateid(record, place));
            }
            if let RequestForm::InSession(form) = &mut pending.form {
                form.places = places;
            }
        }
        readiness
    }

    /// Chooses the stateid for each place; `Over` if the state is lost.
    fn choose_states(&mut self, now: Duration, places: &mut [StatePlace]) -> Readiness {
        for place in places {
            let key = (place.state.file, place.state.owner.id);
            let found = match place.state.purpose {
                StatePurpose::Attribute => {
                    IoState::Shown(self.states.any(&key, place.state.access))
                }
                StatePurpose::Data => self.states.io(now, &key, place.state.access),
            };
            place.shown = match found {
                IoState::Shown(stateid) => stateid,
                IoState::Anonymous => Stateid4::ANONYMOUS,
                IoState::Busy => return Readiness::Blocked(key),
                IoState::Lost => return Readiness::Over,
                IoState::Closed if self.states.files.len() >= OPENS_MAX => Stateid4::ANONYMOUS,
                IoState::Closed => {
                    self.open_for(now, &place.state.clone());
                    return Readiness::Blocked(key);
                }
            };
        }
        Readiness::Ready
    }

    /// Opens a file for a caller that reads or writes it without having opened it.
    fn open_for(&mut self, now: Duration, wanted: &StateUse) {
        let open = self.states.open_of(&wanted.file, &wanted.owner);
        open.is_busy = true;
        open.used = now;
        self.open_on_our_own(now, wanted);
    }
}

fn write_stateid(record: &mut [u8], place: &StatePlace) {
    let mut encoder = Encoder::new();
    encoder.value(&place.shown);
    if let Some(bytes) = record.get_mut(place.at..place.at + STATEID_BYTES) {
        bytes.copy_from_slice(encoder.bytes());
    }
}

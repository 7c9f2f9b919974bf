use std::fmt;
use std::panic::Location;

use comity_vfs::{Result, Status};

/// The outcome of a case.
pub type Check = std::result::Result<(), Failure>;

/// The reason why a case failed, and its line.
#[derive(Debug, Clone)]
pub struct Failure {
    reason: String,
    place: &'static Location<'static>,
}

impl Failure {
    #[track_caller]
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), place: Location::caller() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.place.file().rsplit('/').next().unwrap_or_default();
        write!(f, "{} ({file}:{})", self.reason, self.place.line())
    }
}

impl From<Status> for Failure {
    #[track_caller]
    fn from(status: Status) -> Self {
        Self::new(format!("{status} ({status:?})"))
    }
}

#[track_caller]
pub(super) fn ensure(holds: bool, claim: &str) -> Check {
    if holds { Ok(()) } else { Err(Failure::new(format!("not so: {claim}"))) }
}

#[track_caller]
pub(super) fn same<T: PartialEq + fmt::Debug>(got: T, wanted: T) -> Check {
    if got == wanted {
        Ok(())
    } else {
        Err(Failure::new(format!("got {got:.200?}, wanted {wanted:.200?}")))
    }
}

/// Returns whether a verb failed with one of `statuses`.
#[track_caller]
pub(super) fn fails<T>(outcome: Result<T>, statuses: &[Status]) -> Check {
    match outcome {
        Err(status) if statuses.contains(&status) => Ok(()),
        Err(status) => Err(Failure::new(format!("got {status:?}, wanted one of {statuses:?}"))),
        Ok(_) => Err(Failure::new(format!("it worked, wanted one of {statuses:?}"))),
    }
}

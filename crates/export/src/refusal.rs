use comity_credential::AuthStat;
use comity_vfs::Status;

/// The reason why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request fails with this status of the protocol.
    Status(Status),
    /// The credential is refused.
    Denied(AuthStat),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

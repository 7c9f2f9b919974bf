use comity_credential::AuthStat;
use comity_vfs::Status;

/// The reason why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The protocol's own status says why.
    Status(Status),
    /// The credential will not do.
    Denied(AuthStat),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

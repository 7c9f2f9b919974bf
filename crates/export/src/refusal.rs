use comity_credential::AuthStat;
use comity_vfs::Status;

use crate::ExportId;

/// The reason why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request fails with this status of the protocol.
    Status(Status),
    /// The credential is refused.
    Denied(AuthStat),
    /// The caller may use the export, but other servers have its files.
    Referred(Referred),
}

/// The proof that a caller may use an export whose files other servers have. Only admission makes
/// it, so nobody else is told where the files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Referred(ExportId);

impl Referred {
    pub(crate) const fn to(export: ExportId) -> Self {
        Self(export)
    }

    pub(crate) const fn export_id(self) -> ExportId {
        self.0
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

use std::fmt;

use comity_vfs::Status;

use crate::engine::StartFailure;
use crate::machine::MountFailure;
use crate::transport::TlsRefusal;

/// The reason why a directory of a server could not be mounted.
#[derive(Debug)]
pub struct MountError {
    server: String,
    reason: MountReason,
}

#[derive(Debug)]
enum MountReason {
    Start(StartFailure),
    Path(Option<String>, Status),
}

impl MountError {
    pub(super) fn start(server: &str, failure: StartFailure) -> Self {
        Self { server: server.to_owned(), reason: MountReason::Start(failure) }
    }

    pub(super) fn path(server: &str, name: Option<&[u8]>, status: Status) -> Self {
        let name = name.map(|name| name.escape_ascii().to_string());
        Self { server: server.to_owned(), reason: MountReason::Path(name, status) }
    }

    /// The refusal of TLS that made the mount fail, if that is the reason.
    #[must_use]
    pub fn refusal(&self) -> Option<&TlsRefusal> {
        match &self.reason {
            MountReason::Start(StartFailure::Unreachable(error)) => TlsRefusal::behind(error),
            _ => None,
        }
    }

    /// Returns whether the server supports none of the versions that were tried.
    #[must_use]
    pub const fn is_about_versions(&self) -> bool {
        matches!(self.reason, MountReason::Start(StartFailure::Refused(MountFailure::Version)))
    }
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.server)?;
        if let Some(refusal) = self.refusal() {
            return refusal.fmt(f);
        }
        match &self.reason {
            MountReason::Start(StartFailure::Threads(error)) => {
                write!(f, "the system cannot create a thread: {error}")
            }
            MountReason::Start(StartFailure::Unreachable(error)) => {
                write!(f, "cannot connect: {error}; is the server running, and is this its port?")
            }
            MountReason::Start(StartFailure::NoAnswer) => f.write_str(
                "the server accepts the connection but does not answer: it is stopped, hangs or \
                     is overloaded; look at it, and mount again once it answers",
            ),
            MountReason::Start(StartFailure::Refused(failure)) => failure.fmt(f),
            MountReason::Path(None, Status::Acces) => f.write_str(
                "access denied: is the directory exported to this machine and this user?",
            ),
            MountReason::Path(None, status) => write!(f, "the root cannot be looked at: {status}"),
            MountReason::Path(Some(name), Status::NoEnt) => {
                write!(
                    f,
                    "there is no `{name}` on the server, or it is not exported to this machine"
                )
            }
            MountReason::Path(Some(name), status) => write!(f, "`{name}`: {status}"),
        }
    }
}

impl std::error::Error for MountError {}

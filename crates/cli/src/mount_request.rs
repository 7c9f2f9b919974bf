//! The requests that the program which serves a mount takes at its control socket.

use comity_server::control::ControlRequest;
use comity_vfs::{Cred, Disk, Gid, Uid};
use serde::{Deserialize, Serialize};

/// Seconds in which a program that is well answers, where it asks no server.
const ANSWER_SECONDS: u64 = 5;

/// The same where it reads from a server.
const SERVER_SECONDS: u64 = 60;

/// A request to the program that serves a mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum MountRequest {
    /// Asks for the state of the mount and of its cache.
    Status,
    /// Does something to a file that is cached.
    File {
        /// The action.
        verb: FileVerb,
        /// The bytes of the path of the file below the root of the mount, which need not be text.
        path: Vec<u8>,
        /// The user who asks.
        caller: MountCaller,
    },
    /// Compares some pages with their checksums.
    Verify {
        /// The place that the answer before has told.
        place: Option<String>,
    },
}

/// An action on a file that is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FileVerb {
    /// Reads some of what is missing.
    Fill,
    /// Keeps it.
    Pin,
    /// Drops it.
    Drop,
}

/// The user under whose ids a file is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MountCaller {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl MountCaller {
    /// The user who runs this program.
    pub(crate) fn of_process() -> Self {
        let groups = rustix::process::getgroups().unwrap_or_default();
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: groups.into_iter().map(rustix::process::Gid::as_raw).collect(),
        }
    }

    /// The same for a file system.
    pub(crate) fn cred(&self) -> Cred<Disk> {
        let groups = self.groups.iter().copied().map(Gid::new);
        Cred::new(Uid::new(self.uid), Gid::new(self.gid)).with_groups(groups)
    }
}

impl ControlRequest for MountRequest {
    fn patience_seconds(&self) -> u64 {
        match self {
            Self::File { .. } => SERVER_SECONDS,
            Self::Verify { .. } | Self::Status => ANSWER_SECONDS,
        }
    }
}

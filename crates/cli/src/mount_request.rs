//! The requests to the program that serves a mount, at its control socket.

use comity_server::control::ControlRequest;
use comity_vfs::{Cred, Disk, Gid, Uid};
use serde::{Deserialize, Serialize};

/// Seconds in which a program answers a request that needs no server.
const ANSWER_SECONDS: u64 = 5;

/// Seconds in which a program answers a request that reads from a server.
const SERVER_SECONDS: u64 = 60;

/// A request to the program that serves a mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum MountRequest {
    /// Asks for the state of the mount and of its cache.
    Status,
    /// Does something to a cached file.
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
        /// The place from the previous answer, at which to continue.
        place: Option<String>,
    },
}

/// An action on a cached file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FileVerb {
    /// Reads a part of the data that is not cached.
    Fill,
    /// Keeps the file in the cache.
    Pin,
    /// Drops the file from the cache.
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

    /// The ids of the caller as a credential for a file system.
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

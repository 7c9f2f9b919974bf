use std::io;
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};

/// The name by which servers identify this client (RFC 8881, 2.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The owner: the same in each run of one mount, and different from all other mounts and
    /// machines.
    pub owner: Vec<u8>,
    /// The verifier: different in each run, so that the server drops the state of the last run.
    pub verifier: [u8; 8],
}

impl ClientIdentity {
    /// Makes an identity with a new verifier.
    ///
    /// # Errors
    /// The system cannot supply random bytes.
    pub fn new(owner: impl Into<Vec<u8>>) -> io::Result<Self> {
        let mut verifier = [0; 8];
        let count = getrandom(&mut verifier, GetRandomFlags::empty())?;
        if count < verifier.len() {
            return Err(io::Error::other("the system gave too few random bytes"));
        }
        Ok(Self { owner: owner.into(), verifier })
    }
}

/// The time for which calls without a reply are tried (nfs(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Until they are answered (`hard`).
    Hard,
    /// For this time, then they fail (`soft`).
    Soft(Duration),
}

impl Persistence {
    /// The time after which calls fail; `None` if they never do.
    pub(crate) const fn patience(self) -> Option<Duration> {
        match self {
            Self::Hard => None,
            Self::Soft(patience) => Some(patience),
        }
    }
}

/// The settings of a client.
#[derive(Debug, Clone)]
pub(crate) struct MachineSettings {
    /// Its name.
    pub(crate) identity: ClientIdentity,
    /// The credential of calls for the client itself, as the body of AUTH_SYS.
    pub(crate) credential: Vec<u8>,
    /// The highest and the lowest minor version to try.
    pub(crate) minors: (u32, u32),
    /// Connections to the server.
    pub(crate) connections: usize,
    /// The time without a reply after which a server counts as not responding.
    pub(crate) patience: Duration,
    /// The time for which calls without a reply are tried.
    pub(crate) persistence: Persistence,
    /// True if calls that change names do not time out once they were sent: a repeated call could
    /// meet the change of the first one and fail.
    pub(crate) awaits_changes: bool,
    /// Most bytes of the data of one call.
    pub(crate) data_bytes_max: u32,
    /// True if the client wants delegations.
    pub(crate) wants_delegations: bool,
    /// True if the shell receives recalls as events, and returns the delegations.
    pub(crate) hands_up_recalls: bool,
    /// A number that differs from run to run.
    pub(crate) seed: u32,
}

use std::io;
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};

/// The name by which servers know this client (RFC 8881, 2.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The owner: the same in each run of one mount, another for every other mount and machine.
    pub owner: Vec<u8>,
    /// The run: another one each time, so that the server drops what the last run has left.
    pub verifier: [u8; 8],
}

impl ClientIdentity {
    /// This owner, in a run that begins now.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(owner: impl Into<Vec<u8>>) -> io::Result<Self> {
        let mut verifier = [0; 8];
        let count = getrandom(&mut verifier, GetRandomFlags::empty())?;
        if count < verifier.len() {
            return Err(io::Error::other("the system gave too few random bytes"));
        }
        Ok(Self { owner: owner.into(), verifier })
    }
}

/// The fate of calls that are not answered (nfs(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// They are tried for as long as it takes (`hard`).
    Hard,
    /// They fail when they have been tried for so long (`soft`).
    Soft(Duration),
}

impl Persistence {
    /// The time after which calls fail, if they do.
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
    /// The credential of calls that are about the client itself, as AUTH_SYS has it.
    pub(crate) credential: Vec<u8>,
    /// The highest and the lowest minor version that is spoken.
    pub(crate) minors: (u32, u32),
    /// Connections to the server.
    pub(crate) connections: usize,
    /// The time without any answer after which a server counts as not responding.
    pub(crate) patience: Duration,
    /// The fate of calls that are not answered.
    pub(crate) persistence: Persistence,
    /// True if calls that change names are tried for as long as it takes once they are at the
    /// server: a caller who asks again would meet its own change.
    pub(crate) awaits_changes: bool,
    /// Most bytes of the data of one call.
    pub(crate) data_bytes_max: u32,
    /// True if delegations are welcome.
    pub(crate) wants_delegations: bool,
    /// True if recalls are told to the shell, which gives the delegations back.
    pub(crate) hands_up_recalls: bool,
    /// A number that differs from run to run.
    pub(crate) seed: u32,
}

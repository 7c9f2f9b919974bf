use std::time::Duration;

use comity_idmap::Owners;
use comity_proto::nfs3;
use comity_vfs::{Cred, Disk, Status};

use crate::limits::CONNECTIONS_MAX;
use crate::rpc::auth_sys;
use crate::session::{ClientIdentity, MachineSettings, Persistence};
use crate::stateless::StatelessSettings;

/// A version of NFS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NfsVersion {
    /// 3 (RFC 1813).
    Three,
    /// 4.1 (RFC 8881).
    FourOne,
    /// 4.2 (RFC 7862).
    FourTwo,
}

impl NfsVersion {
    pub(super) const fn of_minor(minor: u32) -> Self {
        if minor >= 2 { Self::FourTwo } else { Self::FourOne }
    }

    /// The minor version of version 4. The value for version 3 is never used.
    const fn minor(self) -> u32 {
        match self {
            Self::Three | Self::FourOne => 1,
            Self::FourTwo => 2,
        }
    }
}

/// The use of delegations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelegationUse {
    /// The client requests none.
    None,
    /// Delegated files are opened locally. The client returns a recalled delegation at once.
    Own,
    /// The same, but [`comity_vfs::OpenFiles::poll_event`] reports recalls, and its user, such as a
    /// cache, returns the delegations.
    HandedUp,
}

/// The options of a mount, with their names in nfs(5).
#[derive(Debug, Clone)]
pub struct MountOptions {
    /// The path of the directory as names, from the server's root.
    pub path: Vec<Vec<u8>>,
    /// The lowest and the highest version to try (`vers`). Version 3 is used only if it is the
    /// highest.
    pub versions: (NfsVersion, NfsVersion),
    /// The name by which the server identifies this mount.
    pub identity: ClientIdentity,
    /// The name of this machine, for AUTH_SYS.
    pub machine_name: Vec<u8>,
    /// The owner of the mount, whose credential is used for verbs without a caller.
    pub cred: Cred<Disk>,
    /// Converts between owner strings and ids; without names, owner strings are numbers.
    pub owners: Owners,
    /// Connections to the server (`nconnect`), 16 at most.
    pub connections: usize,
    /// The time after which a call without a reply has timed out (`timeo`).
    pub patience: Duration,
    /// Number of further timeouts that a call may take (`retrans`) before it fails (`soft`), or
    /// before its connection is closed (`hard`).
    pub retries: u32,
    /// True if calls fail after these timeouts (`soft`); otherwise they are retried until they are
    /// answered (`hard`).
    pub is_soft: bool,
    /// The error of a call that has timed out (`soft`): [`Status::Io`], or [`Status::Delay`] if the
    /// user of the file system makes its own callers retry. With `Delay`, calls that change names
    /// and were sent are waited for all the same: a repeated call could meet the change of the
    /// first one and fail.
    pub late: Status,
    /// Most bytes of a READ (`rsize`).
    pub read_bytes_max: u32,
    /// Most bytes of a WRITE (`wsize`).
    pub write_bytes_max: u32,
    /// The use of delegations.
    pub delegations: DelegationUse,
    /// The time within which the server must have accepted the client.
    pub introduction: Duration,
}

/// Most bytes of the data of one call.
const DATA_BYTES_MAX: u32 = 1 << 20;

impl MountOptions {
    /// The default options. Those that Linux has too are its defaults: `hard,timeo=600,retrans=2`,
    /// 1 MiB per READ or WRITE, one connection.
    #[must_use]
    pub fn new(identity: ClientIdentity, cred: Cred<Disk>) -> Self {
        Self {
            path: Vec::new(),
            versions: (NfsVersion::FourOne, NfsVersion::FourTwo),
            identity,
            machine_name: rustix::system::uname().nodename().to_bytes().to_vec(),
            cred,
            owners: Owners::default(),
            connections: 1,
            patience: Duration::from_secs(60),
            retries: 2,
            is_soft: false,
            late: Status::Io,
            read_bytes_max: DATA_BYTES_MAX,
            write_bytes_max: DATA_BYTES_MAX,
            delegations: DelegationUse::Own,
            introduction: Duration::from_secs(30),
        }
    }

    /// Sets the directory, by its path from the server's root.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        let names = path.split('/').filter(|name| !name.is_empty() && *name != ".");
        self.path = names.map(|name| name.as_bytes().to_vec()).collect();
        self
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.clamp(1, CONNECTIONS_MAX)
    }

    fn persistence(&self) -> Persistence {
        let all = self.patience * (self.retries + 1);
        if self.is_soft { Persistence::Soft(all) } else { Persistence::Hard }
    }

    fn seed(&self) -> u32 {
        u32::from_be_bytes(self.identity.verifier.first_chunk().copied().unwrap_or_default())
    }

    /// The settings of a client of version 3.
    pub(super) fn stateless_settings(&self) -> StatelessSettings {
        StatelessSettings {
            program: (nfs3::PROGRAM, nfs3::VERSION),
            credential: auth_sys(&self.cred, &self.machine_name),
            connections: self.connections(),
            patience: self.patience,
            persistence: self.persistence(),
            seed: self.seed(),
        }
    }

    pub(super) fn machine_settings(&self) -> MachineSettings {
        let largest = self.read_bytes_max.max(self.write_bytes_max);
        MachineSettings {
            identity: self.identity.clone(),
            credential: auth_sys(&self.cred, &self.machine_name),
            minors: (self.versions.1.minor(), self.versions.0.minor()),
            connections: self.connections(),
            patience: self.patience,
            persistence: self.persistence(),
            awaits_changes: self.late == Status::Delay,
            data_bytes_max: largest.clamp(MESSAGE_BYTES_MIN, DATA_BYTES_MAX),
            wants_delegations: self.delegations != DelegationUse::None,
            hands_up_recalls: self.delegations == DelegationUse::HandedUp,
            seed: self.seed(),
        }
    }
}

/// Smallest data size for which message sizes are negotiated: a page of a directory.
const MESSAGE_BYTES_MIN: u32 = crate::limits::LISTING_BYTES;

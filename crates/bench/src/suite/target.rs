use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, bail};

use super::{Files, TargetRecord};
use crate::suite::Version;

/// The system that is measured.
pub trait Target: Send + Sync {
    /// Returns its name in results, as given on the command line.
    fn name(&self) -> &str;

    /// The kind of the target.
    fn kind(&self) -> TargetKind;

    /// Returns its description for the result.
    fn record(&self) -> TargetRecord;

    /// Opens the target's files for one worker: with its own open files, or its own connection.
    ///
    /// # Errors
    /// The target is gone, or refuses.
    fn files(&self) -> Result<Box<dyn Files>>;

    /// The top of the target on this machine, if it is a directory.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Returns the server, if the target is reached by protocol.
    fn server(&self) -> Option<TargetServer<'_>> {
        None
    }

    /// Opens the target's files for one worker that calls under a key.
    ///
    /// # Errors
    /// The target knows no keys, is gone, or refuses.
    fn files_by_key(&self, by: ByKey) -> Result<Box<dyn Files>> {
        bail!("{} knows no keys, and {by:?} needs one: name peer:keys", self.name())
    }

    /// Returns whether callers are known by their keys.
    fn has_keys(&self) -> bool {
        false
    }

    /// Returns whether the target's files can be locked.
    fn has_locks(&self) -> bool {
        self.directory().is_some()
    }

    /// Returns the number of RPCs of each kind sent to the target so far, if it can be known; the
    /// result contains the difference of two readings.
    ///
    /// # Errors
    /// The number cannot be read now.
    fn calls(&self) -> Result<Option<BTreeMap<String, u64>>> {
        Ok(None)
    }

    /// Checks that the target is still the one that was opened, for instance that it was not
    /// unmounted.
    ///
    /// # Errors
    /// The reason why it is not.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The rights by which a worker calls, and what the server keeps about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByKey {
    /// Credentials from the account down to the worker's key, which is a new one; 0 for the key of
    /// the account itself.
    pub chain: usize,
    /// Objects whose decisions the server keeps for each key.
    pub decisions: usize,
}

/// The address of a server, and the parameters of calls to it.
#[derive(Debug, Clone, Copy)]
pub struct TargetServer<'a> {
    /// Its address.
    pub address: SocketAddr,
    /// The handle of the export's top.
    pub root: &'a [u8],
    /// The version of NFS.
    pub version: Version,
    /// The uid of the calls.
    pub user: u32,
    /// The gid of the calls.
    pub group: u32,
}

/// The way in which a target is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// The target is a directory, used by system calls.
    Directory,
    /// The target is an NFS server, used by our own RPC client.
    Protocol,
    /// The target is code of this program, which keeps no files.
    Fake,
}

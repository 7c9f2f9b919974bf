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

    /// Its kind.
    fn kind(&self) -> TargetKind;

    /// Returns its description for the result.
    fn record(&self) -> TargetRecord;

    /// Its files, for one worker: what one program with its own open files sees, or one connection.
    ///
    /// # Errors
    /// It is gone, or refuses.
    fn files(&self) -> Result<Box<dyn Files>>;

    /// Its top on this machine, where it is a directory.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Returns the server, if the target is reached by protocol.
    fn server(&self) -> Option<Server<'_>> {
        None
    }

    /// Its files, for one worker that calls under a key.
    ///
    /// # Errors
    /// It knows no keys, is gone, or refuses.
    fn files_by_key(&self, by: ByKey) -> Result<Box<dyn Files>> {
        bail!("{} knows no keys, and {by:?} needs one: name peer:keys", self.name())
    }

    /// Returns whether callers are known by their keys.
    fn has_keys(&self) -> bool {
        false
    }

    /// Returns whether its files can be locked.
    fn has_locks(&self) -> bool {
        self.directory().is_some()
    }

    /// Returns the number of RPCs of each kind sent to it so far, if known: the difference of two
    /// moments goes into the result.
    ///
    /// # Errors
    /// It could be known, but now is not.
    fn calls(&self) -> Result<Option<BTreeMap<String, u64>>> {
        Ok(None)
    }

    /// Checks that it is still what it was when it was opened: a directory that was unmounted is
    /// not.
    ///
    /// # Errors
    /// It is not, and why.
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

/// A server as a client reaches it.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a> {
    /// Its address.
    pub address: SocketAddr,
    /// The handle of the export's top.
    pub root: &'a [u8],
    /// The version that is spoken.
    pub version: Version,
    /// The user calls are made as.
    pub user: u32,
    /// The user's group.
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

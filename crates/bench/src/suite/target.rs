use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;

use super::{Files, TargetRecord};
use crate::suite::Version;

/// What is measured.
pub trait Target: Send + Sync {
    /// What it is called in results, as it was given on the command line.
    fn name(&self) -> &str;

    /// How it is reached.
    fn kind(&self) -> TargetKind;

    /// What is known of it, for the result.
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

    /// Where it speaks NFS, where it is reached by protocol.
    fn server(&self) -> Option<Server<'_>> {
        None
    }

    /// Whether its files can be locked.
    fn has_locks(&self) -> bool {
        self.directory().is_some()
    }

    /// How many RPCs of each kind it has been sent so far, where that can be known: the difference
    /// of two moments goes into the result.
    ///
    /// # Errors
    /// It could be known, but now is not.
    fn calls(&self) -> Result<Option<BTreeMap<String, u64>>> {
        Ok(None)
    }

    /// Whether it is still what it was when it was opened: a directory that was unmounted is not.
    ///
    /// # Errors
    /// It is not, and why.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// A server as a client reaches it.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a> {
    /// Where it listens.
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

/// How a target is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// As a directory, by system calls.
    Directory,
    /// As an NFS server, by our own RPC client.
    Protocol,
    /// As code of this program, which keeps no files.
    Fake,
}

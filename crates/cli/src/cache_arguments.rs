//! The arguments of `comity cache`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::common_arguments::{Json, StateFolderArguments};

/// See [`crate::arguments::Command::Cache`].
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Show what the caches of mounts hold, have saved, and have still to send
    ///
    /// Prints for each mount of this user, or for the one that DIR is in: the bytes on the cache
    /// disk, how much of what programs have read came from there, the calls that the server was
    /// spared, the files that are cached in part, and the data that the server does not have yet,
    /// with the age of the oldest. Asks the programs that serve the mounts, never a server.
    Status(CacheStatus),
    /// Read the rest of files into the cache
    ///
    /// A directory stands for all files below it. Needs the right to read them. Exits with 1 if a
    /// file could not be filled.
    Fill(CacheFiles),
    /// Read files into the cache and keep them there
    ///
    /// Fills the files as `comity cache fill` does; the cleaner then leaves them alone until
    /// `comity cache drop`. They count for dc_max_size all the same.
    Pin(CacheFiles),
    /// Drop files from the cache
    ///
    /// Their space is free at once, and they are read from the server when they are needed. Data
    /// that is still to be sent is not dropped.
    Drop(CacheFiles),
    /// Read all that is cached and compare it with its checksums
    ///
    /// Pages that are damaged are dropped, and read from the server when they are needed. Exits
    /// with 1 if there were some.
    Verify(CacheVerify),
}

/// See [`CacheCommand::Status`].
#[derive(Debug, Args)]
pub(crate) struct CacheStatus {
    /// The directory of a mount, or one below it
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Show it again each second, until interrupted
    #[arg(short = 'w', long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`CacheCommand::Fill`].
#[derive(Debug, Args)]
pub(crate) struct CacheFiles {
    /// A file or directory in a mount
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`CacheCommand::Verify`].
#[derive(Debug, Args)]
pub(crate) struct CacheVerify {
    /// The directory of a mount, or one below it
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

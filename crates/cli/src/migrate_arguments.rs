//! The arguments of `comity migrate`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::common_arguments::{Json, StateFolderArguments};

/// See [`crate::arguments::Command::Migrate`].
#[derive(Debug, Clone, Args)]
pub(crate) struct MigrateArguments {
    /// The folders of the exports: all that are served from one file system
    #[arg(value_name = "EXPORT", value_hint = ValueHint::DirPath)]
    #[arg(required_unless_present = "cancel")]
    pub(crate) exports: Vec<PathBuf>,
    /// The name of the `[[peer]]` that is to serve them
    #[arg(long, value_name = "PEER", required_unless_present = "cancel")]
    pub(crate) to: Option<String>,
    /// Forward the calls of clients of NFSv3 to the peer for so many seconds, and move their locks
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) proxy_for: Option<u64>,
    /// Ask both servers whether the exports could be moved, and move nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Cancel the move that is under way, unless the peer is being asked to take the exports
    #[arg(long, conflicts_with_all = ["exports", "to", "proxy_for", "dry_run"])]
    pub(crate) cancel: bool,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

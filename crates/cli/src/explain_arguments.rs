//! The arguments of `comity explain`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use comity_export::Operation;

use crate::common_arguments::{Json, Source, StateFolderArguments};

/// See [`crate::arguments::Command::Explain`].
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The folder that is exported
    #[arg(value_name = "EXPORT", value_hint = ValueHint::DirPath)]
    pub(crate) export: PathBuf,

    /// Path of the file, below EXPORT or as seen from there
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,

    /// The client's address
    #[arg(long, value_name = "ADDR")]
    pub(crate) from: IpAddr,

    /// The user, by the client's number
    #[arg(long, value_name = "UID")]
    pub(crate) uid: u32,

    /// The user's primary group, by the client's number
    #[arg(long, value_name = "GID")]
    pub(crate) gid: u32,

    /// Supplementary groups, by the client's numbers
    #[arg(long, value_name = "GID,...", value_delimiter = ',')]
    pub(crate) groups: Vec<u32>,

    /// Operation: stat, read, write, execute or list
    #[arg(long, value_name = "OPERATION", default_value = "stat",
          value_parser = str::parse::<Operation>)]
    pub(crate) op: Operation,

    #[command(flatten)]
    pub(crate) source: Source,

    /// Ask the running server; this is the default without a configuration
    #[arg(long, conflicts_with_all = ["exports", "config"])]
    pub(crate) live: bool,

    #[command(flatten)]
    pub(crate) state: StateFolderArguments,

    #[command(flatten)]
    pub(crate) json: Json,
}

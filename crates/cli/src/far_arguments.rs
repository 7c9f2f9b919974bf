//! The arguments of a caching proxy: `comity serve --from`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// The server whose files a caching proxy serves.
#[derive(Debug, Args)]
pub(crate) struct FarServer {
    /// Serve a directory of another NFS server under its own path, as `nfs://HOST[:PORT]/PATH`;
    /// files that were read once are served from --cache
    #[arg(long, value_name = "SOURCE",
          conflicts_with_all = ["exports", "config", "in_memory", "no_local_locks"])]
    pub(crate) from: Option<PathBuf>,

    /// Keep what was read from the server of --from in this folder; without it nothing is kept
    #[arg(long, value_name = "FOLDER", requires = "from", value_hint = ValueHint::DirPath)]
    pub(crate) cache: Option<PathBuf>,

    /// Options about the server of --from and its cache, by their names in comity-mount(1), such as
    /// vers=3, soft, timeo= and dc_max_size=
    #[arg(long, value_name = "OPTION,...", requires = "from", value_delimiter = ',')]
    pub(crate) from_options: Vec<String>,
}

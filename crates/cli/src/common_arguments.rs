//! Arguments that several commands have.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// The folder in which a server keeps its persistent state.
#[derive(Debug, Clone, Args)]
pub(crate) struct StateFolderArguments {
    /// Folder for the key of the handles, the lock and the control socket [default:
    /// /var/lib/comity as root, else $XDG_STATE_HOME/comity or ~/.local/state/comity]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) state_dir: Option<PathBuf>,
}

/// The form of the output.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Json {
    /// Write JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// The files of the configuration.
#[derive(Debug, Clone, Args)]
pub(crate) struct Source {
    /// Read exports from this file, in the format of exports(5)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) exports: Option<PathBuf>,

    /// Read exports from this file, in the format of comity.toml(5)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

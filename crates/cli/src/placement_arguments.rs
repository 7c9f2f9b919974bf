//! The arguments of `comity placement`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::common_arguments::{Json, State};

/// See [`crate::arguments::Command::Placement`].
#[derive(Debug, Subcommand)]
pub(crate) enum PlacementCommand {
    /// Show the data servers of a running metadata server, and which of them answer
    ///
    /// Prints for each data server of each placement, or of that of EXPORT, its name, its address,
    /// whether it is up or down and since when, and the last error of the connection to it. The
    /// server looks at each of them every ten seconds.
    Status(PlacementStatus),
}

/// See [`PlacementCommand::Status`].
#[derive(Debug, Args)]
pub(crate) struct PlacementStatus {
    /// The folder of an export with data servers [default: all]
    #[arg(value_name = "EXPORT", value_hint = ValueHint::DirPath)]
    pub(crate) export: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) state: State,
    #[command(flatten)]
    pub(crate) json: Json,
}

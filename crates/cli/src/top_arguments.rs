//! The arguments of `comity top`.

use clap::Args;

use crate::common_arguments::{Json, StateFolderArguments};

/// See [`crate::arguments::Command::Top`].
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Print once and exit, instead of a live screen
    #[arg(long)]
    pub(crate) once: bool,

    /// Seconds between two updates
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) delay: u16,

    #[command(flatten)]
    pub(crate) state: StateFolderArguments,

    #[command(flatten)]
    pub(crate) json: Json,
}

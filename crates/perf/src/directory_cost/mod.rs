//! The calls that directory delegations save and cause (RFC 8881, 10.9), with a `comity serve` and
//! mounts by `comity mount` on this machine. Calls are counted at the server.

mod compilation;
mod creation;
mod delayed_line;
mod many;
mod repeated_looks;
mod search;
mod simulator;
mod site;

use std::path::PathBuf;

use anyhow::Result;

use self::site::DelegationBench;
use crate::judged_figure::{self, Measure};
use crate::row_options::RowOptions;

/// Options of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The servers and the rows that are measured.
    #[command(flatten)]
    pub rows: RowOptions,
    /// Also write the figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// The measures, by the rows of the table that they give.
const MEASURES: &[Measure<DelegationBench>] = &[
    ("looks", repeated_looks::measure),
    ("search", search::measure),
    ("compilation", compilation::measure),
    ("creation", creation::measure),
    ("many", many::measure),
    ("simulator", simulator::measure),
];

/// Measures and prints, and returns whether all figures are within their bounds.
///
/// # Errors
/// The server or a mount does not start, or the figures cannot be written.
pub fn run(options: &Options) -> Result<bool> {
    let bench = DelegationBench::make(&options.rows)?;
    judged_figure::run((MEASURES, &bench), &options.rows, options.json.as_deref())
}

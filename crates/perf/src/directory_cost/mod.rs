//! The calls that directory delegations save and cause (RFC 8881, 10.9), with a `comity serve` and
//! mounts by `comity mount` on this machine. Calls are counted at the server.

mod compilation;
mod creation;
mod delayed_line;
mod figure;
mod many;
mod repeated_looks;
mod search;
mod simulator;
mod site;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use self::figure::JudgedFigure;
use self::site::DelegationBench;
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

/// The name and the function of a measure.
type Measure = (&'static str, fn(&DelegationBench) -> Result<Vec<JudgedFigure>>);

/// The measures, by the rows of the table that they give.
const MEASURES: &[Measure] = &[
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
    figure::print_header();
    let mut rows = Vec::new();
    for (name, measure) in MEASURES.iter().filter(|(name, _)| options.rows.is_wanted(name)) {
        let measured = measure(&bench).with_context(|| (*name).to_owned())?;
        measured.iter().for_each(JudgedFigure::print);
        rows.extend(measured);
    }
    if let Some(path) = &options.json {
        fs::write(path, figure::as_json(&rows)).with_context(|| path.display().to_string())?;
    }
    Ok(rows.iter().all(JudgedFigure::is_met))
}

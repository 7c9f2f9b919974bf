//! The cost of parallel NFS (RFC 8881, 12 and 13): layouts, the metadata server's work for data
//! that clients move themselves, data servers behind lines of their own, and small files.
//!
//! The client is this program, with calls of its own: no file system of the kernel takes part.

mod aggregate;
mod byte_count;
mod held_layouts;
mod layout_calls;
mod lines;
mod mds_time;
mod placed_site;
mod plain_streams;
mod small_files;
mod transfer;

use std::path::PathBuf;

use anyhow::{Context, Result};
use comity_bench::targets;

use crate::judged_figure::{self, Measure};
use crate::row_options::RowOptions;
use crate::server_process::TestBed;

/// Options of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The servers and the rows that are measured.
    #[command(flatten)]
    pub rows: RowOptions,
    /// The folder of the files that are moved: one in memory, so that no disk hides what servers
    /// and lines cost.
    #[arg(long, default_value = "/dev/shm")]
    memory: PathBuf,
    /// Also write the figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// The folders and options that the measures need.
struct PnfsBench {
    test_bed: TestBed,
    /// A folder in memory.
    memory: tempfile::TempDir,
    quick: bool,
}

/// The table, by the names of the specification.
const MEASURES: &[Measure<PnfsBench>] = &[
    ("LAYOUTGET", layout_calls::measure),
    ("mds time", mds_time::measure),
    ("held", held_layouts::measure),
    ("lines", aggregate::measure),
    ("small files", small_files::measure),
];

/// Measures and prints, and returns whether all figures are within their bounds.
///
/// # Errors
/// A server does not start, or a call is not answered as it must be.
pub fn run(options: &Options) -> Result<bool> {
    targets::enter_namespace()?;
    let memory = tempfile::Builder::new().prefix("comity-pnfs-").tempdir_in(&options.memory);
    let memory = memory.context("make a folder in memory")?;
    crate::server_process::open_to_all(memory.path())?;
    let (test_bed, quick) = (TestBed::make(&options.rows.subject)?, options.rows.quick);
    let bench = PnfsBench { test_bed, memory, quick };
    judged_figure::run((MEASURES, &bench), &options.rows, options.json.as_deref())
}

impl PnfsBench {
    /// A number, or a tenth of it in a quick run.
    const fn scaled(&self, number: u64) -> u64 {
        if self.quick { number / 10 } else { number }
    }

    const fn rounds(&self) -> usize {
        if self.quick { 2 } else { 5 }
    }
}

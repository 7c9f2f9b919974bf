//! The cost of rights held by keys, beside that of `DisCFS` (Miltchev et al., 2003).
//!
//! Instructions of plain calls are counted by callgrind in two builds, one without callers by key.
//! Processor time of work by an account and by grants is taken in one process, without sockets and
//! TLS, round by round: the program is the example `instructions` of this crate. `PostMark` also
//! runs against a real server over TLS.

mod judgement;
mod plain;
mod postmark;
mod sample;
mod table;
mod tree;

use std::path::PathBuf;

use anyhow::Result;

pub use sample::{BothCosts, CHAIN_LENGTHS, CREDENTIALS, OF_ONE_FOLDER, RoundCosts, SIZES};
pub use tree::{directory, file};

/// Options of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The program that makes calls in one process, as it is delivered.
    #[arg(long, default_value = "target/release/examples/instructions")]
    program: PathBuf,
    /// The same built without callers by key (`--no-default-features --features maps-and-cloaks`).
    #[arg(long, default_value = "target/release/examples/instructions-without-keys")]
    without_keys: PathBuf,
    /// The comity that is measured over TLS.
    #[arg(long, default_value = "target/release/comity")]
    comity: PathBuf,
    /// The folder where files are made: one in memory, so that no disk hides what grants cost.
    #[arg(long, default_value = "/dev/shm")]
    directory: PathBuf,
    /// A fifth of the files, and fewer rounds.
    #[arg(long)]
    pub quick: bool,
    /// Exit with 1 if something costs more than it may.
    #[arg(long)]
    pub check: bool,
    /// Number of rounds. The median of each figure counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Files of the tree that is searched, as in 2003, and the fewer ones of `--quick`.
const FILES: (u64, u64) = (5_236, 1_000);
/// Rounds under `--quick`.
const ROUNDS_QUICK: usize = 3;

/// Measures and prints, and returns whether all judged lines meet their bounds.
///
/// # Errors
/// Valgrind or a program is missing or fails.
pub fn run(options: &Options) -> Result<bool> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: acting as an account takes root");
        return Ok(true);
    }
    let (files, rounds) =
        if options.quick { (FILES.1, ROUNDS_QUICK) } else { (FILES.0, options.rounds) };
    let plain = plain::count_all((&options.program, &options.without_keys))?;
    let tree = tree::build(&options.directory, files)?;
    let samples = sample::take(&options.program, (tree.path(), files), rounds)?;
    let over_tls = postmark::run_postmark(options, rounds)?;
    let median = sample::median(&samples);
    let lines = judgement::lines(&plain, &median, (&over_tls, files));
    table::print(&lines);
    table::print_series(&median);
    Ok(judgement::holds(&lines))
}

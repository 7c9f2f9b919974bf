//! What range maps and cloaks cost: the five configurations of Spadavecchia & Zadok 2002, section
//! 4, under the load of an `ls -lR`, with 10 to 100,000 entries.
//!
//! Instructions are counted by callgrind; processor and wall time are taken in turns. The program
//! that makes the calls is the example `instructions` of this crate.

mod case;
mod count;
mod goal;
mod time;
mod tree;

use std::path::PathBuf;

use anyhow::Result;

pub use case::{Case, Configuration, Files, Part};
pub use time::Sample;
pub use tree::{FOREIGN, HIDDEN, foreign};

/// What to measure, and with what.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The program that makes the calls (an example of this crate).
    #[arg(long, default_value = "target/release/examples/instructions")]
    pub program: PathBuf,
    /// Count only what has a goal, and take no time.
    #[arg(long)]
    pub quick: bool,
    /// Exit with 1 if something costs more than it did.
    #[arg(long)]
    pub check: bool,
    /// Rounds of taking time.
    #[arg(long, default_value_t = 15)]
    pub rounds: u32,
}

/// Measures and prints; says whether nothing costs more than it did.
///
/// # Errors
/// Valgrind or the program is missing or fails.
pub fn run(options: &Options) -> Result<bool> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: files of many owners take root");
        return Ok(true);
    }
    let tree = tree::build()?;
    let count = |cases: &[(Case, Part)]| count::all(&options.program, tree.path(), cases);
    let counts = count(&goal::cases())?;
    let held = goal::judge(&counts);
    if !options.quick {
        count::table(&count(&Case::counted())?);
        count::line(&count(&Case::hidden())?);
        time::measure(&options.program, tree.path(), options.rounds)?;
    }
    Ok(held)
}

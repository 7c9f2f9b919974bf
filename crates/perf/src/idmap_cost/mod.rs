//! The cost of range maps and cloaks: the five configurations of Spadavecchia & Zadok 2002, section
//! 4, under the load of an `ls -lR`, with 10 to 100,000 entries.
//!
//! Instructions are counted by callgrind; processor and wall time are taken in turns. The program
//! that makes the calls is the example `instructions` of this crate, and for VAN a build of it in
//! which range maps and cloaks are absent.

mod case;
mod count;
mod goal;
mod programs;
mod time;
mod tree;

use anyhow::Result;

pub use case::{Case, Configuration, Files, Part};
pub use programs::Programs;
pub use time::Sample;
pub use tree::{FOREIGN, HIDDEN, foreign};

/// Options of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(flatten)]
    programs: Programs,
    /// Count only the cases that have a goal, and take no time.
    #[arg(long)]
    pub quick: bool,
    /// Exit with 1 if something costs more than it did.
    #[arg(long)]
    pub check: bool,
    /// Rounds of taking time.
    #[arg(long, default_value_t = 15)]
    pub rounds: u32,
}

/// Measures and prints, and returns whether all costs are within their bounds.
///
/// # Errors
/// Valgrind or a program is missing or fails.
pub fn run(options: &Options) -> Result<bool> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: files of many owners take root");
        return Ok(true);
    }
    let (tree, programs) = (tree::build()?, &options.programs);
    let count = |cases: &[(Case, Part)]| count::all(programs, tree.path(), cases);
    let held = [goal::judge(&count(&goal::cases())?), count::line(&count(&Case::hidden())?)];
    if !options.quick {
        count::table(&count(&Case::counted())?);
        goal::times(&time::take(programs, tree.path(), options.rounds)?);
    }
    Ok(held == [true; 2])
}

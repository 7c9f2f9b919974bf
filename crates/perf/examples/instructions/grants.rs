//! The cost of rights held by keys, in one process. `grants TREE FILES` prints a line of JSON: the
//! server's processor time for a caller with an account, and for one that acts by grants.

mod first_look;
mod line;
mod site;
mod sizes;
mod work;

use std::path::Path;

use anyhow::{Context, Result, bail};
use comity_perf::grants_cost::RoundCosts;
use rustix::time::{ClockId, clock_gettime};

/// Links of the chain by which a key got its rights.
const CHAIN: usize = 3;

pub(crate) fn run(words: &[String]) -> Result<()> {
    let [tree, files] = words else { bail!("grants TREE FILES") };
    let (tree, files) = (Path::new(tree), files.parse().context("no number of files")?);
    let sample = RoundCosts {
        grep: work::grep(tree, files)?,
        grep_of_own_chains: work::grep_of_own_chains(tree, files)?,
        build: work::build(tree, files)?,
        postmark: work::postmark(tree)?,
        signature: first_look::signature()?,
        decision: first_look::decision(tree, files, CHAIN)?,
        kept: first_look::kept(tree)?,
        chains: first_look::chains(tree, files)?,
        credentials: first_look::credentials(tree, files)?,
        one_folder: first_look::one_folder(tree, files)?,
        sizes: sizes::reads(tree, files)?,
    };
    println!("{}", serde_json::to_string(&sample)?);
    Ok(())
}

/// Processor time in nanoseconds that this thread takes for a work, the kernel's part included.
fn processor_time(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let before = now();
    work()?;
    Ok((now() - before) as f64)
}

use anyhow::{Context, Result};
use comity_bench::suite::{Place, Sample, SuiteOutcome};
use comity_bench::targets::{Options as TargetOptions, Spec};

use super::Options;
use crate::workload_run;

/// Runs of `PostMark` for each round of the other figures: one takes a second.
const ROUNDS_A_ROUND: u32 = 4;

/// Transactions a second by grants as multiples of those by an account, over TLS.
#[derive(Debug)]
pub(super) struct OverTls {
    /// The work of a key that the server has never seen.
    pub(super) cold: f64,
    /// The second time on the same connection.
    pub(super) warm: f64,
    /// The second run by the account as a multiple of its first: the noise.
    pub(super) noise: f64,
}

/// Runs `PostMark` of the workload `discfs` against a server that keeps its files in memory.
///
/// # Errors
/// The server does not start, or fails an operation.
pub(super) fn run_postmark(options: &Options, rounds: usize) -> Result<OverTls> {
    let (discfs, mut parameters) = workload_run::of_paper("discfs")?;
    let parts = discfs.parameters().iter().find(|each| each.name == "parts");
    parameters.set(parts.context("no parts")?, "postmark")?;
    let target = Spec::parse(&format!("peer:keys={}", options.directory.display()))?;
    let comity = std::path::absolute(&options.comity)?;
    let target = (vec![target], TargetOptions { comity: Some(comity), ..TargetOptions::default() });
    let rounds = ROUNDS_A_ROUND * rounds as u32;
    Ok(ratios(&workload_run::in_rounds((discfs, parameters), target, rounds)?))
}

/// The ratios of the fastest runs: other work on the machine only makes a run slower.
fn ratios(outcome: &SuiteOutcome) -> OverTls {
    let rounds = outcome.workloads.iter().flat_map(|workload| &workload.rounds);
    let samples: Vec<&Sample> = rounds.flat_map(|round| &round.samples).collect();
    let fastest = |rights: &str, run: u64| {
        let at = |sample: &Sample, name: &str, place: Place| sample.at.get(name) == Some(&place);
        let is_one = |sample: &&&Sample| {
            sample.metric == "postmark transactions"
                && at(sample, "rights", rights.into())
                && at(sample, "run", run.into())
        };
        samples.iter().filter(is_one).map(|sample| sample.value).fold(f64::NAN, f64::max)
    };
    OverTls {
        cold: fastest("COLD", 1) / fastest("NK", 1),
        warm: fastest("WARM", 2) / fastest("NK", 2),
        noise: fastest("NK", 2) / fastest("NK", 1),
    }
}

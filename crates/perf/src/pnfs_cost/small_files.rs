//! `PostMark` on an export whose files are on data servers, beside one whose files are not. The
//! client sends everything to the metadata server, as the threshold of the placement says of files
//! of this size.

use anyhow::Result;
use comity_bench::suite::SuiteOutcome;
use comity_bench::targets::{Options, Spec};

use super::PnfsBench;
use super::placed_site::{PlacedSite, StorePlace};
use crate::judged_figure::JudgedFigure;
use crate::state_cost::report::median;
use crate::workload_run;

/// The threshold of the placement.
const THRESHOLD: &str = "threshold = { read_file_bytes = 1048576, write_file_bytes = 1048576 }\n";
/// The number of data servers.
const STORES: usize = 2;
/// Rounds, and rounds of a quick run.
const ROUNDS: (u32, u32) = (7, 3);
/// The part of the transactions of an export without a placement that must be reached.
const PART_LEAST: f64 = 0.95;
/// The figure of `PostMark` that is compared.
const METRIC: &str = "transactions";

/// Measures transactions a second of both exports, in turn, with all files in memory.
pub(super) fn measure(bench: &PnfsBench) -> Result<Vec<JudgedFigure>> {
    let site = |stores| {
        let places = StorePlace::on_loopback(stores)?;
        PlacedSite::start_with(bench, bench.memory.path(), (&places, THRESHOLD))
    };
    let sites = [site(0)?, site(STORES)?];
    let [plain, placed] = transactions(bench, &sites)?;
    let parts: Vec<f64> = placed.iter().zip(&plain).map(|(a, b)| a / b).collect();
    let (shown, part) = (JudgedFigure::shown, median(parts.clone()));
    let name = "PostMark: the second as a part of the first";
    Ok(vec![
        shown("PostMark, not placed, transactions/s", median(plain)),
        shown("PostMark, on two data servers, transactions/s", median(placed)),
        JudgedFigure::at_least(name, part, PART_LEAST).of_rounds(&parts),
    ])
}

/// Runs `PostMark` against both sites; returns the transactions a second of each in each round.
fn transactions(bench: &PnfsBench, sites: &[PlacedSite; 2]) -> Result<[Vec<f64>; 2]> {
    let url = |site: &PlacedSite| {
        let (address, path) = (site.mds.address, site.small());
        Spec::parse(&format!("nfs://{address}{path}?vers=4.1"))
    };
    let targets = sites.iter().map(url).collect::<Result<_>>()?;
    let rounds = if bench.quick { ROUNDS.1 } else { ROUNDS.0 };
    let postmark = workload_run::of_paper("postmark")?;
    let outcome = workload_run::in_rounds(postmark, (targets, Options::default()), rounds)?;
    Ok([rates_of(&outcome, 0), rates_of(&outcome, 1)])
}

fn rates_of(outcome: &SuiteOutcome, target: usize) -> Vec<f64> {
    let rounds = outcome.workloads.iter().flat_map(|workload| &workload.rounds);
    let samples = rounds.filter(|round| round.target == target).flat_map(|round| &round.samples);
    let transactions = samples.filter(|sample| sample.metric == METRIC);
    transactions.map(|sample| sample.value).collect()
}

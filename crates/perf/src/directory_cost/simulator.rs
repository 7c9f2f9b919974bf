//! The calls that the simulator predicts for a trace, and those of a server with mounts that do the
//! same.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::ValueEnum as _;
use comity_bench::dirsim::{self, CallCounts, Pattern, PolicyName, Settings};

use super::site::{DelegationBench, MountedExport, OperationCounts, Site};
use crate::judged_figure::JudgedFigure;

/// Clients of each trace.
const CLIENTS: u32 = 2;
/// Time for which directories are believed without a delegation, in seconds. It is short, so that a
/// short trace has directories that are looked at again.
const BELIEVED_SECONDS: u64 = 1;
/// Files are believed for long: the simulator has no calls about files.
const OPTIONS: &str = "acdirmin=1,acdirmax=1,acregmin=600,acregmax=600";
/// Largest difference of the calls, in percent.
const DIFFERENCE_MOST: f64 = 5.0;
/// The policies that are compared, with the values of `dir_delegations`.
const POLICIES: [(PolicyName, &str, bool); 3] = [
    (PolicyName::Never, "never", false),
    (PolicyName::SecondAsk, "second-ask:sole-writer", true),
    (PolicyName::Always, "always:sole-writer:recall-only", false),
];

/// Compares all patterns under all policies.
pub(super) fn measure(bench: &DelegationBench) -> Result<Vec<JudgedFigure>> {
    let mut figures = Vec::new();
    for pattern in Pattern::value_variants() {
        for policy in POLICIES {
            figures.extend(compare(bench, *pattern, policy)?);
        }
    }
    Ok(figures)
}

/// Rounds of a pattern: so many that its trace takes some ten seconds.
const fn rounds(pattern: Pattern, is_quick: bool) -> u32 {
    let rounds: u32 = match pattern {
        Pattern::Path => 2,
        Pattern::Libraries => 4,
        Pattern::Includes | Pattern::Mail => 3,
        Pattern::Build => 8,
        Pattern::Update => 12,
    };
    if is_quick { rounds.div_ceil(2) } else { rounds }
}

fn compare(
    bench: &DelegationBench,
    pattern: Pattern,
    (policy, value, notifies): (PolicyName, &str, bool),
) -> Result<Vec<JudgedFigure>> {
    let events = pattern.trace(1, CLIENTS, rounds(pattern, bench.is_quick));
    let believed = BELIEVED_SECONDS * 1_000_000;
    let settings = Settings {
        policy,
        believed_microseconds: (believed, believed),
        notification_delay_microseconds: notifies.then_some(0),
        ..Settings::default()
    };
    let site = bench.serve(value)?;
    let path = bench.directory("trace-")?;
    dirsim::lay_out(&events, &path)?;
    let mounted: Vec<MountedExport> =
        (0..CLIENTS).map(|_| site.mount(&path, OPTIONS)).collect::<Result<_>>()?;
    let mounts: BTreeMap<u32, PathBuf> =
        (1..).zip(&mounted).map(|(client, mounted)| (client, mounted.dir.clone())).collect();
    let callbacks = callbacks(&site)?;
    let (replayed, counts) = site.count(|| dirsim::replay(&events, &mounts, &path))?;
    ensure!(replayed.other_outcomes == 0, "{} other outcomes", replayed.other_outcomes);
    let predicted = dirsim::simulate(settings, &replayed.performed).calls;
    let measured = calls(&counts, callbacks_since(&site, callbacks)?);
    let name = format!("simulator, {pattern:?}, {policy:?}").to_lowercase();
    println!("{name}\n  predicted {predicted:?}\n  measured  {measured:?}");
    let (predicted, measured) = (predicted.total() as f64, measured.total() as f64);
    let difference = (predicted / measured - 1.0).abs() * 100.0;
    Ok(vec![JudgedFigure::bounded(format!("{name}: % of the calls"), difference, DIFFERENCE_MOST)])
}

/// The recalls and the CB_NOTIFYs that the server has sent.
fn callbacks(site: &Site) -> Result<[u64; 2]> {
    let names = [
        "comity_directory_delegations_recalled_total",
        "comity_directory_notification_calls_total",
    ];
    let [recalls, notifications] = names.map(|name| site.number(name));
    Ok([recalls?, notifications?])
}

fn callbacks_since(site: &Site, [recalls, notifications]: [u64; 2]) -> Result<[u64; 2]> {
    let now = callbacks(site)?;
    Ok([now[0] - recalls, now[1] - notifications])
}

fn calls(counts: &OperationCounts, [recalls, notifications]: [u64; 2]) -> CallCounts {
    CallCounts {
        lookups: counts.of("LOOKUP"),
        getattrs: counts.getattrs_alone(),
        accesses: counts.of("ACCESS"),
        requests: counts.of("GET_DIR_DELEGATION"),
        readdirs: counts.of("READDIR"),
        changes: counts.of("CREATE") + counts.of("REMOVE") + counts.of("RENAME"),
        recalls,
        returns: counts.of("DELEGRETURN"),
        notifications,
    }
}

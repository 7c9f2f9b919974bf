//! The latencies of operations: every percentile, on two logarithmic axes.

use std::collections::BTreeMap;

use super::chart::{Chart, Direction, Series, Spot, Style};
use super::scale::Kind;
use crate::number;
use crate::suite::{Latency, SuiteOutcome, WorkloadRecord};

/// The percentiles shown in tables and as grid lines of the plots.
pub(super) const PARTS: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Points of a curve for each factor of ten.
const POINTS: usize = 12;

/// Latencies of one kind of operation under the same circumstances, on all targets.
#[derive(Debug, Clone)]
pub(super) struct Distribution {
    /// The operation and its circumstances.
    pub(super) name: String,
    /// All rounds of each target together.
    pub(super) targets: Vec<Option<Latency>>,
}

/// The distributions of a workload, in the order in which they first came.
#[must_use]
pub(super) fn distributions(
    outcome: &SuiteOutcome,
    workload: &WorkloadRecord,
) -> Vec<Distribution> {
    let count = outcome.targets.len();
    let mut found: Vec<Distribution> = Vec::new();
    for round in workload.rounds.iter().filter(|round| round.target < count) {
        for latency in &round.latencies {
            let name = name(latency);
            let place = found.iter().position(|known| known.name == name).unwrap_or_else(|| {
                found.push(Distribution { name, targets: vec![None; count] });
                found.len() - 1
            });
            add(&mut found[place].targets[round.target], latency);
        }
    }
    found
}

fn name(latency: &Latency) -> String {
    let at: Vec<String> =
        latency.at.iter().map(|(name, place)| format!("{name} {place}")).collect();
    if at.is_empty() {
        return latency.operation.clone();
    }
    format!("{}, {}", latency.operation, at.join(", "))
}

fn add(sum: &mut Option<Latency>, more: &Latency) {
    let Some(sum) = sum else {
        *sum = Some(more.clone());
        return;
    };
    let mut buckets: BTreeMap<u64, u64> = sum.buckets.iter().copied().collect();
    for (nanoseconds, count) in &more.buckets {
        *buckets.entry(*nanoseconds).or_default() += count;
    }
    sum.buckets = buckets.into_iter().collect();
    sum.from_due_time &= more.from_due_time;
}

impl Distribution {
    /// Returns whether the wait for earlier operations may be missing (closed loop).
    #[must_use]
    pub(super) fn is_closed_loop(&self) -> bool {
        self.targets.iter().flatten().any(|latency| !latency.from_due_time)
    }

    /// The percentiles of every target.
    #[must_use]
    pub(super) fn chart(&self, targets: &[String]) -> Chart {
        let series = self.targets.iter().enumerate();
        let series = series.filter_map(|(number, latency)| {
            let name = targets.get(number)?;
            Some(curve(name, number, latency.as_ref()?))
        });
        Chart {
            title: format!("Latency of {}", self.name),
            about: "Latency by the part of operations that were faster; lower is better".to_owned(),
            size: (458.0, 270.0),
            x: Direction {
                label: "part of operations that were faster".to_owned(),
                kind: Kind::Logarithmic,
                format: faster,
                ticks: Some(vec![2.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]),
            },
            y: Direction {
                label: "latency".to_owned(),
                kind: Kind::Logarithmic,
                format: number::seconds,
                ticks: None,
            },
            series: series.collect(),
            bands: Vec::new(),
        }
    }
}

/// The percentage of operations that are faster than the slowest one in `slower`.
fn faster(slower: f64) -> String {
    format!("{} %", 100.0 - 100.0 / slower)
}

fn curve(name: &str, number: usize, latency: &Latency) -> Series {
    let count = latency.count();
    let decades = (count.max(1) as f64).log10();
    let steps = (decades * POINTS as f64).ceil() as usize;
    let spot = |step: usize| {
        let slower = 10_f64.powf(step as f64 / POINTS as f64).min(count as f64).max(1.0);
        let part = 1.0 - 1.0 / slower;
        let seconds = latency.quantile(part) as f64 / 1e9;
        let percent = format!("{:.3}", part * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        let told = number::seconds(seconds);
        let tip = format!("{name}: {percent} % of {count} operations took at most {told}");
        Spot { x: slower, y: seconds, ends: None, tip }
    };
    let points = (0..=steps).map(spot).collect();
    Series { name: name.to_owned(), number, style: Style::Dense, points }
}

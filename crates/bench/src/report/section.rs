//! A workload on the page: its description, figures as drawings and tables, latencies, RPCs, notes.

use std::collections::{BTreeMap, BTreeSet};

use super::aggregate::{Cell, Line};
use super::bars::bars;
use super::curves;
use super::distribution::{Distribution, PARTS};
use super::page::Page;
use super::table::{Entry, Table};
use crate::number;
use crate::statistics::{Ratio, Verdict};
use crate::suite::{Better, SuiteOutcome, Unit, WorkloadRecord};

/// Most lines in one drawing of bars.
const BARS_MAX: usize = 14;

/// Most distributions that are drawn; the table shows all.
const DISTRIBUTIONS_MAX: usize = 8;

/// A note on latencies of a closed loop.
const CLOSED_LOOP: &str = "Where operations were made one after the other (closed loop), waiting \
    behind a slow one is not in these figures; rpc --rate measures from when each was due.";

/// Puts figures on the page.
pub(super) fn figures(page: &mut Page, name: &str, lines: &[Line], targets: &[String]) {
    let judged = lines.iter().filter(|line| line.unit.better() != Better::Neither);
    let (groups, others) = curves::split(&judged.collect::<Vec<_>>());
    let mut plots: Vec<_> = groups.iter().map(|group| group.chart(targets).draw()).collect();
    let units: BTreeSet<Unit> = others.iter().map(|line| line.unit).collect();
    for unit in units {
        let alike: Vec<&Line> = others.iter().copied().filter(|line| line.unit == unit).collect();
        for part in alike.chunks(BARS_MAX) {
            plots.push(bars(&title(part, unit), part, targets));
        }
    }
    page.plots(name, &plots);
    page.add(table(name, lines, targets).html());
}

fn title(lines: &[&Line], unit: Unit) -> String {
    let metrics: BTreeSet<&str> = lines.iter().map(|line| line.metric.as_str()).collect();
    let what = match metrics.iter().next() {
        Some(metric) if metrics.len() == 1 => (*metric).to_owned(),
        _ => "Figures".to_owned(),
    };
    format!("{what} in {}", unit.symbol())
}

/// Every figure of every target, ratios against the first, and history.
fn table(name: &str, lines: &[Line], targets: &[String]) -> Table {
    let mut heads = vec!["figure".to_owned()];
    heads.extend(targets.iter().cloned());
    let others = targets.iter().skip(1);
    heads.extend(others.map(|target| format!("{target}: times better")));
    let has_history = lines.iter().any(|line| !line.history.is_empty());
    if has_history {
        heads.push("original work".to_owned());
    }
    let against = match targets {
        [first, _, ..] => format!("; times better than {first}, from pairs of rounds"),
        _ => String::new(),
    };
    let caption = format!("{name}: means with 95 % intervals{against}");
    let mut table = Table::new(&caption, heads);
    for line in lines {
        let mut row = vec![Entry::words(line.label())];
        row.extend(line.cells.iter().map(|found| cell(found.as_ref(), line.unit)));
        row.extend((1..targets.len()).map(|target| gain(line.gain(target).as_ref())));
        if has_history {
            row.push(history(line));
        }
        table.row(row);
    }
    table
}

fn cell(cell: Option<&Cell>, unit: Unit) -> Entry {
    let Some(cell) = cell else { return Entry::words("-") };
    let below = match cell.verdict {
        Verdict::Steady { spread } => number::spread(spread),
        Verdict::Noisy { spread } => format!("noisy, {}", number::spread(spread)),
        Verdict::Few { samples: 1 } => "one sample".to_owned(),
        Verdict::Few { samples } => format!("{samples} samples"),
    };
    let mean = cell.summary.mean;
    let entry = Entry::number(number::of_unit(mean, unit), mean);
    match unit.better() {
        Better::Neither => entry,
        _ if cell.verdict.is_steady() => entry.with(below),
        _ => entry.with(below).class("number noisy"),
    }
}

/// The gain as a cell of a table, coloured only if the difference is significant.
pub(super) fn gain(ratio: Option<&Ratio>) -> Entry {
    let Some(ratio) = ratio else { return Entry::words("") };
    let interval = ratio.interval;
    let entry = Entry::number(format!("{:.2}", interval.center), interval.center);
    if ratio.pairs < 2 {
        return entry.with("one pair");
    }
    let class = match (ratio.is_distinct(), interval.center > 1.0) {
        (false, _) => "number",
        (true, true) => "number better",
        (true, false) => "number worse",
    };
    entry.with(format!("{:.2} to {:.2}", interval.low, interval.high)).class(class)
}

fn history(line: &Line) -> Entry {
    let Some(first) = line.history.first() else { return Entry::words("") };
    let told = |figure: &crate::suite::Figure| {
        format!("{} ({})", number::of_unit(figure.value, figure.unit), figure.system)
    };
    let all: Vec<String> = line.history.iter().map(told).collect();
    let below = format!("history: {}", first.source);
    Entry::number(all.join("; "), first.value).with(below).class("number old")
}

/// Puts latencies on the page.
pub(super) fn latencies(page: &mut Page, name: &str, found: &[Distribution], targets: &[String]) {
    if found.is_empty() {
        return;
    }
    page.heading("Latency of single operations");
    if found.iter().any(Distribution::is_closed_loop) {
        page.paragraph("note", CLOSED_LOOP);
    }
    let drawn = found.iter().take(DISTRIBUTIONS_MAX);
    let plots: Vec<_> = drawn.map(|each| each.chart(targets).draw()).collect();
    page.plots(name, &plots);
    page.add(latency_table(name, found, targets).html());
}

fn latency_table(name: &str, found: &[Distribution], targets: &[String]) -> Table {
    let parts = PARTS.map(|part| format!("{} %", part * 100.0));
    let heads = ["operation", "target", "operations"].map(str::to_owned);
    let heads = heads.into_iter().chain(parts).chain(["slowest".to_owned()]).collect();
    let caption = format!("{name}: latency that a part of the operations did not pass");
    let mut table = Table::new(&caption, heads);
    for each in found {
        for (target, latency) in each.targets.iter().enumerate() {
            let Some(latency) = latency else { continue };
            let count = latency.count() as f64;
            let mut row = vec![Entry::words(&each.name), Entry::words(&targets[target])];
            row.push(Entry::number(number::grouped(count), count));
            for part in PARTS.into_iter().chain([1.0]) {
                let seconds = latency.quantile(part) as f64 / 1e9;
                row.push(Entry::number(number::seconds(seconds), seconds));
            }
            table.row(row);
        }
    }
    table
}

/// Adds RPC counts to the page, if they are known.
pub(super) fn calls(page: &mut Page, workload: &WorkloadRecord, outcome: &SuiteOutcome) {
    let mut kinds: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    let targets = outcome.targets.len();
    for round in workload.rounds.iter().filter(|round| round.target < targets) {
        for (kind, count) in round.calls.iter().flatten() {
            let sums = kinds.entry(kind).or_insert_with(|| vec![(0, 0); targets]);
            let (sum, rounds) = &mut sums[round.target];
            (*sum, *rounds) = (*sum + count, *rounds + 1);
        }
    }
    if kinds.is_empty() {
        return;
    }
    let names = outcome.targets.iter().map(|target| target.name.clone());
    let heads = ["RPC".to_owned()].into_iter().chain(names).collect();
    let caption = format!("{}: RPCs sent in a round, by kind", workload.name);
    let mut table = Table::new(&caption, heads);
    for (kind, sums) in kinds {
        let mean = |(sum, rounds): (u64, u64)| sum as f64 / rounds as f64;
        let entry = |each: (u64, u64)| match each.1 {
            0 => Entry::words("-"),
            _ => Entry::number(number::grouped(mean(each)), mean(each)),
        };
        table.row([Entry::words(kind)].into_iter().chain(sums.into_iter().map(entry)).collect());
    }
    page.heading("RPCs");
    page.add(table.html());
}

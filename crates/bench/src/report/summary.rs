//! The top of the page: the targets, the findings, and the noisy figures.

use maud::{Markup, html};

use super::aggregate::{Line, overall};
use super::date;
use super::page::Page;
use super::section::gain;
use super::svg::printable;
use super::table::{Entry, Table};
use crate::number;
use crate::statistics::Ratio;
use crate::suite::{Better, SuiteOutcome, TargetRecord};

/// An explanation of how figures are judged.
const RULES: &str = "Times better: above 1 is better, whether a time or a rate was measured. A \
    figure is steady if the 95 % interval of its mean (Student's t over rounds) lies within 5 % of \
    it, else noisy; with fewer than three rounds it is no result. Unsteady figures are marked ~. \
    Ratios are of rounds that were run one after the other, and are coloured only where their \
    95 % interval leaves out 1.";

/// The share of the processors used by other programs above which the machine counts as busy.
const BUSY_ABOVE: f64 = 0.5;

/// A workload's name and its lines, for the summary.
pub(super) type Digested<'a> = (&'a str, &'a [Line]);

/// Adds the summary to the page; `more` are findings of other kinds.
pub(super) fn front(
    page: &mut Page,
    outcome: &SuiteOutcome,
    digested: &[Digested<'_>],
    more: Vec<String>,
) {
    let targets: Vec<String> = outcome.targets.iter().map(|target| target.name.clone()).collect();
    head(page, outcome);
    ending(page, outcome);
    busy(page, outcome);
    let findings: Vec<String> = findings(digested, &targets).into_iter().chain(more).collect();
    let glance = glance(digested, &targets);
    page.section("Summary", "Summary", |page| {
        page.list("findings", &findings);
        if !glance.is_empty() {
            page.add(glance.html());
        }
        noise(page, digested);
    });
}

fn head(page: &mut Page, outcome: &SuiteOutcome) {
    let machine = &outcome.environment;
    let place = format!(
        "{} on {}, {} x {}, {} of memory, {}",
        date::text(outcome.started),
        machine.host,
        machine.cpus,
        machine.cpu,
        number::bytes(machine.memory_bytes as f64),
        machine.kernel
    );
    page.add(html! {
        header {
            p class="kicker" { "comity bench" }
            h1 { (printable(&title(outcome))) }
            p class="chips" {
                @for (number, target) in outcome.targets.iter().enumerate() {
                    span class={ "chip k" (number % 6) } { (printable(&target.name)) } "\n"
                }
            }
            p class="place" { (printable(&place)) }
        }
    });
}

/// The title of the page.
pub(super) fn title(outcome: &SuiteOutcome) -> String {
    let names: Vec<&str> = outcome.targets.iter().map(|target| target.name.as_str()).collect();
    match names.as_slice() {
        [] => "No targets".to_owned(),
        [one] => one.to_string(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

fn ending(page: &mut Page, outcome: &SuiteOutcome) {
    if let Some(failure) = &outcome.failure {
        let text = format!(
            "The run failed in round {} of {} on {}: {}. Earlier measurements are below.",
            failure.round + 1,
            failure.workload,
            failure.target,
            failure.message
        );
        page.paragraph("banner bad", &text);
    } else if !outcome.complete {
        let text = "The run was ended before all was measured. comity bench run --resume goes on.";
        page.paragraph("banner", text);
    }
}

/// Adds a warning if other programs used the machine: figures are then lower, and vary.
fn busy(page: &mut Page, outcome: &SuiteOutcome) {
    let machine = &outcome.environment;
    let load = machine.load.split_whitespace().next().and_then(|load| load.parse::<f64>().ok());
    let Some(load) = load.filter(|load| *load > BUSY_ABOVE * machine.cpus as f64) else { return };
    let text = format!(
        "The machine was busy with something else: {load} programs wanted its {} processors when \
         the run began. Absolute figures are worse than they would be alone; targets took turns, \
         so their ratios hold better.",
        machine.cpus
    );
    page.paragraph("banner", &text);
}

/// One sentence for each workload.
fn findings(digested: &[Digested<'_>], targets: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for (name, lines) in digested {
        for (number, target) in targets.iter().enumerate().skip(1) {
            if let Some(ratio) = overall(lines, number) {
                out.push(format!("{name}: {}", verdict(target, &targets[0], &ratio)));
            }
        }
    }
    out
}

fn verdict(target: &str, base: &str, ratio: &Ratio) -> String {
    let interval = ratio.interval;
    if ratio.pairs < 2 {
        let times = number::plain(interval.center);
        return format!(
            "{target} did {times} times as well as {base} in the only round: no result"
        );
    }
    if !ratio.is_distinct() {
        return format!("{target} and {base} cannot be told apart");
    }
    let (word, ratio) = match interval.center > 1.0 {
        true => ("better", *ratio),
        false => ("worse", ratio.inverse()),
    };
    let interval = ratio.interval;
    format!(
        "{target} is {:.2} times {word} than {base} (95 %: {:.2} to {:.2})",
        interval.center, interval.low, interval.high
    )
}

/// A row for each workload: its first figure on each target, and the mean of all ratios.
fn glance(digested: &[Digested<'_>], targets: &[String]) -> Table {
    let mut heads = vec!["workload".to_owned(), "first figure".to_owned()];
    heads.extend(targets.iter().cloned());
    let others = targets.iter().skip(1);
    heads.extend(others.map(|target| format!("{target}: times better, all figures")));
    heads.push("noisy".to_owned());
    let against = match targets {
        [first, _, ..] => format!(", compared with {first}"),
        _ => String::new(),
    };
    let caption = format!("At a glance{against}");
    let mut table = Table::new(&caption, heads);
    for (name, lines) in digested {
        let Some(first) = lines.iter().find(|line| line.unit.better() != Better::Neither) else {
            continue;
        };
        let mut row = vec![Entry::words(*name), Entry::words(first.label())];
        row.extend(first.cells.iter().map(|cell| match cell {
            None => Entry::words("-"),
            Some(cell) => {
                let mean = cell.summary.mean;
                Entry::number(number::of_unit(mean, first.unit), mean)
            }
        }));
        row.extend((1..targets.len()).map(|target| gain(overall(lines, target).as_ref())));
        row.push(noisy(lines));
        table.row(row);
    }
    table
}

/// Number of figures that can be judged and are noisy.
fn noisy(lines: &[Line]) -> Entry {
    let all = lines.iter().filter(|line| is_judged(line)).count();
    let noisy = lines.iter().filter(|line| judged_noisy(line)).count();
    match all {
        0 => Entry::words("too few rounds to say"),
        all => Entry::number(format!("{noisy} of {all}"), noisy as f64),
    }
}

/// Returns whether one direction of a figure is better, and it has enough rounds to be judged for
/// noise.
fn is_judged(line: &Line) -> bool {
    line.unit.better() != Better::Neither && line.is_judged()
}

fn judged_noisy(line: &Line) -> bool {
    is_judged(line) && line.is_noisy()
}

fn noise(page: &mut Page, digested: &[Digested<'_>]) {
    page.paragraph("note", RULES);
    let name = |(workload, lines): &Digested<'_>| {
        let noisy: Vec<String> =
            lines.iter().filter(|line| judged_noisy(line)).map(Line::label).collect();
        let judged = lines.iter().filter(|line| is_judged(line)).count();
        match noisy.len() {
            0 => None,
            1 => Some(format!("{workload}: {}", noisy[0])),
            all if all == judged => Some(format!("{workload}: all {all}")),
            _ => Some(format!("{workload}: {}", noisy.join("; "))),
        }
    };
    let noisy: Vec<String> = digested.iter().filter_map(name).collect();
    if noisy.is_empty() {
        return;
    }
    page.details("Noisy figures", |page| page.list("", &noisy));
}

/// Puts the machine, the targets and the method on the page.
pub(super) fn environment(page: &mut Page, outcome: &SuiteOutcome) {
    let machine = &outcome.environment;
    let mut rows = vec![
        ("began", date::text(outcome.started)),
        ("ended", date::text(outcome.updated)),
        ("host", machine.host.clone()),
        ("processor", format!("{} x {}", machine.cpus, machine.cpu)),
        ("memory", number::bytes(machine.memory_bytes as f64)),
        ("kernel", machine.kernel.clone()),
        ("virtual", if machine.is_virtual { "yes" } else { "not known to be" }.to_owned()),
        ("load at the start", machine.load.clone()),
        ("seed", outcome.seed.to_string()),
        ("rounds asked for", outcome.rounds.to_string()),
        ("preset", format!("{:?}", outcome.preset).to_lowercase()),
        ("tool", outcome.tool.clone()),
    ];
    let look = |least| ("a look at the clock", format!("{least} ns, taken off each operation"));
    rows.extend(machine.look_nanoseconds.map(look));
    rows.extend(machine.governor.iter().map(|governor| ("frequency", governor.clone())));
    page.section("Conditions", "Conditions", |page| {
        page.add(definitions("The run", &rows));
        outcome.targets.iter().for_each(|target| page.add(target_block(target)));
    });
}

fn target_block(target: &TargetRecord) -> Markup {
    let kind = format!("{:?}", target.kind).to_lowercase();
    let mut rows = vec![("reached", kind), ("durability", target.durability.clone())];
    rows.extend(target.server.iter().map(|server| ("server", server.clone())));
    rows.extend(target.sync_seconds.map(|took| ("4 KiB and fsync", number::seconds(took))));
    rows.push(("caches between runs", target.cache_reset.clone()));
    if let Some(mount) = &target.mount {
        rows.push(("mount", format!("{} of {}", mount.filesystem, mount.source)));
        rows.push(("options", mount.options.clone()));
    }
    let settings: Vec<String> =
        target.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    if !settings.is_empty() {
        rows.push(("settings", settings.join(", ")));
    }
    definitions(&target.name, &rows)
}

fn definitions(title: &str, rows: &[(&str, String)]) -> Markup {
    html! {
        h3 { (printable(title)) }
        dl { @for (name, text) in rows { dt { (name) } dd { (printable(text)) } "\n" } }
    }
}

//! The table of the simulator, as text, as JSON and as a plot.

use clap::ValueEnum as _;
use serde_json::{Value, json};

use super::options::OnChange;
use super::{PolicyName, SimulatedCalls};
use crate::number;
use crate::report::plot;

/// Bytes that a server stores for a delegation with notifications and the record of its use
/// (`cargo xtask bench --directories --rows many`).
const DELEGATION_BYTES: u64 = 840;

/// The figures of the simulation of 2006 (Wickman at CITI), of always granting without a bound: the
/// parts of LOOKUP and of revalidations of directories that were saved, at least.
const CITI: (&str, &str) = (">90 %", ">95 %");

/// The explanation of the columns.
const NOTE: &str = "\nLOOKUP, revalidate: the part of these calls that is saved; CITI: the \
    simulation of 2006\n(Wickman), always granting, without a bound.\n";

/// A simulated server with its clients.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variant {
    /// The policy.
    pub(super) policy: PolicyName,
    /// The number of clients for each one of the trace.
    pub(super) clients: u32,
    /// Most directories that a client remembers.
    pub(super) cached_directories: usize,
    /// The server's answer to a change by another client.
    pub(super) on_change: OnChange,
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct VariantOutcome {
    /// The server and its clients.
    pub(super) variant: Variant,
    /// Their calls.
    pub(super) tally: SimulatedCalls,
    /// The calls of the same clients without delegations.
    pub(super) before: SimulatedCalls,
}

impl VariantOutcome {
    fn policy(&self) -> String {
        let name = self.variant.policy.to_possible_value();
        name.map_or_else(String::new, |name| name.get_name().to_owned())
    }

    fn on_change(&self) -> String {
        let delay = self.variant.on_change.delay();
        delay.map_or_else(|| "recall".to_owned(), |delay| format!("{} s", seconds(delay)))
    }

    /// Calls that happen only because of delegations.
    const fn caused(&self) -> u64 {
        let calls = &self.tally.calls;
        let again = calls.changes - self.before.calls.changes;
        calls.recalls + calls.returns + calls.notifications + again
    }

    /// The part of the LOOKUPs that are saved, if there are any.
    fn lookups_saved(&self) -> Option<f64> {
        saved(self.tally.calls.lookups, self.before.calls.lookups)
    }

    /// The part of the calls that are saved by which clients ask whether a directory has changed.
    /// GET_DIR_DELEGATION does that, too.
    fn revalidations_saved(&self) -> Option<f64> {
        let of = |tally: &SimulatedCalls| tally.calls.getattrs + tally.calls.requests;
        saved(of(&self.tally), of(&self.before))
    }

    /// The cells of the row, in the order of [`COLUMNS`].
    fn cells(&self) -> [String; COLUMNS.len()] {
        let SimulatedCalls { calls, notified, held_max, stale_answers, .. } = self.tally;
        let part = |part: Option<f64>| part.map_or_else(|| "-".to_owned(), number::percent);
        let is_citi = self.variant.policy == PolicyName::Always;
        let citi = |figure: &str| (if is_citi { figure } else { "" }).to_owned();
        [
            self.policy(),
            self.variant.clients.to_string(),
            self.variant.cached_directories.to_string(),
            self.on_change(),
            calls.total().to_string(),
            number::percent(self.tally.saved(&self.before)),
            part(self.lookups_saved()),
            citi(CITI.0),
            part(self.revalidations_saved()),
            citi(CITI.1),
            self.caused().to_string(),
            calls.recalls.to_string(),
            notified.to_string(),
            held_max.to_string(),
            number::bytes((held_max * DELEGATION_BYTES) as f64),
            stale_answers.to_string(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "policy": self.policy(),
            "clients": self.variant.clients,
            "cached_directories": self.variant.cached_directories,
            "notification_delay_seconds": self.variant.on_change.delay().map(seconds),
            "saved": self.tally.saved(&self.before),
            "lookups_saved": self.lookups_saved(),
            "revalidations_saved": self.revalidations_saved(),
            "caused": self.caused(),
            "memory_bytes": self.tally.held_max * DELEGATION_BYTES,
            "tally": self.tally,
            "without_delegations": self.before,
        })
    }
}

fn seconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1e6
}

fn saved(after: u64, before: u64) -> Option<f64> {
    (before > 0).then(|| 1.0 - after as f64 / before as f64)
}

/// The heads of the columns. Those of [`VARIED`] are left out if all rows are alike there.
const COLUMNS: [&str; 16] = [
    "policy",
    "clients",
    "directories",
    "on change",
    "calls",
    "saved",
    "LOOKUP",
    "CITI",
    "revalidate",
    "CITI",
    "caused",
    "recalls",
    "notified",
    "held",
    "memory",
    "stale",
];

/// The columns of what can be given more than once: clients, directories, delays.
const VARIED: std::ops::Range<usize> = 1..4;

/// The rows of a trace.
#[derive(Debug)]
pub(super) struct OutcomeTable {
    /// The rows, at least one.
    pub(super) rows: Vec<VariantOutcome>,
    /// The number of events of the trace.
    pub(super) events: usize,
    /// The number of lines that were left out.
    pub(super) skipped: usize,
}

impl OutcomeTable {
    /// Returns the table for people.
    pub(super) fn text(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(VariantOutcome::cells).collect();
        let mut text = self.head();
        let mut lines = vec![String::new(); rows.len() + 1];
        for (number, head) in COLUMNS.iter().enumerate() {
            let mut cells = rows.iter().filter_map(|row| row.get(number));
            let first = cells.next();
            if VARIED.contains(&number) && cells.all(|cell| Some(cell) == first) {
                continue;
            }
            let cells = rows.iter().filter_map(|row| row.get(number)).map(String::as_str);
            let cells: Vec<&str> = std::iter::once(*head).chain(cells).collect();
            let width = cells.iter().map(|cell| cell.len()).max().unwrap_or(0);
            for (line, cell) in lines.iter_mut().zip(cells) {
                *line += &match number {
                    0 => format!("{cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                };
            }
        }
        lines.iter().for_each(|line| text += &format!("{}\n", line.trim_end()));
        text + NOTE
    }

    fn head(&self) -> String {
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!(", {skipped} lines left out"),
        };
        let delays = self.rows.iter().filter_map(|row| row.variant.on_change.delay());
        let bound = match delays.max() {
            Some(delay) => format!("{} s at most under a delegation", seconds(delay)),
            None => "none under a delegation".to_owned(),
        };
        let events = self.events;
        format!(
            "{events} events{skipped}; staleness: {bound}, else the time for which clients \
             believe\n\n"
        )
    }

    /// Returns the table for programs.
    pub(super) fn json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(VariantOutcome::json).collect();
        json!({ "events": self.events, "skipped": self.skipped, "rows": rows })
    }

    /// Draws the calls saved by each policy, over what was given more than once: directories,
    /// clients or delays.
    pub(super) fn plot(&self) -> String {
        let across = Axis::ALL.into_iter().find(|axis| self.varies(*axis));
        let across = across.unwrap_or(Axis::Directories);
        let mut lines: Vec<plot::NamedPoints> = Vec::new();
        for row in self.rows.iter().filter(|row| row.variant.policy != PolicyName::Never) {
            let Some(x) = across.of(row) else { continue };
            let (name, point) = (self.line(across, row), (x, row.tally.saved(&row.before)));
            match lines.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push(point),
                None => lines.push((name, vec![point])),
            }
        }
        lines.iter_mut().for_each(|(_, points)| points.sort_by(|a, b| a.0.total_cmp(&b.0)));
        plot::parts("Calls saved by directory delegations", (across.name(), "calls saved"), &lines)
    }

    /// The name of a row's line: its policy, and what else varies.
    fn line(&self, across: Axis, row: &VariantOutcome) -> String {
        let others = Axis::ALL.into_iter().filter(|axis| *axis != across && self.varies(*axis));
        let others = others.map(|axis| match axis {
            Axis::Directories => format!("{} directories", row.variant.cached_directories),
            Axis::Clients => format!("{} clients", row.variant.clients),
            Axis::Delay => row.on_change(),
        });
        std::iter::once(row.policy()).chain(others).collect::<Vec<_>>().join(", ")
    }

    fn varies(&self, axis: Axis) -> bool {
        let mut values = self.rows.iter().map(|row| axis.of(row));
        let first = values.next();
        values.any(|value| Some(value) != first)
    }
}

/// A horizontal axis of a plot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    Directories,
    Clients,
    Delay,
}

impl Axis {
    const ALL: [Self; 3] = [Self::Directories, Self::Clients, Self::Delay];

    const fn name(self) -> &'static str {
        match self {
            Self::Directories => "directories that a client remembers",
            Self::Clients => "clients",
            Self::Delay => "seconds for which changes are gathered",
        }
    }

    /// The place of a row; `None` if it has no delay.
    fn of(self, row: &VariantOutcome) -> Option<f64> {
        match self {
            Self::Directories => Some(row.variant.cached_directories as f64),
            Self::Clients => Some(f64::from(row.variant.clients)),
            Self::Delay => row.variant.on_change.delay().map(seconds),
        }
    }
}

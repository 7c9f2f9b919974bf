//! The command line of the simulator, and its table.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::import::{self, Format};
use super::text::microseconds;
use super::{Actor, Event, Pattern, PolicyName, Settings, SimulatedCalls, simulate};
use crate::number;
use crate::report::plot;
use crate::rng::Rng;
use crate::stdout::say;

/// Bytes that a server stores for a delegation with notifications and the record of its use
/// (`cargo xtask bench --directories --rows many`).
const DELEGATION_BYTES: u64 = 840;

/// The figures of the simulation of 2006.
const HISTORY: &str = "\nCITI 2006 (Wickman; always, no bound): over 90 % of LOOKUP and \
    over 95 % of the\nrevalidations saved.\n";

/// Longest delay of a simulated copy of a client after the client of the trace.
const SHIFT_MICROSECONDS: u64 = 1_000_000;

/// The trace, and the simulated servers.
#[derive(Debug, Args)]
pub struct Options {
    /// Files of events. Each is replayed by a client of its own if it does not name clients
    #[arg(value_name = "TRACE", required_unless_present = "pattern")]
    traces: Vec<PathBuf>,
    /// Make a trace of this pattern instead
    #[arg(long, conflicts_with = "traces")]
    pattern: Option<Pattern>,
    /// Format of the files
    #[arg(long, default_value = "comity")]
    format: Format,
    /// The files tell what programs on the server did, not clients
    #[arg(long)]
    local: bool,
    /// Simulate this many clients for each client of the trace, each at another time within a
    /// second
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// Rounds of a pattern
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Policies to try; may be given more than once [default: all]
    #[arg(long)]
    policy: Vec<PolicyName>,
    /// Most directories that a client remembers; may be given more than once
    #[arg(long, value_name = "N", default_value = "10000")]
    cached_directories: Vec<usize>,
    /// The server tells holders of changes, gathered for so long (CB_NOTIFY), instead of recalling
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    notify_delay: Option<u64>,
    /// Time for which a client believes a directory without a delegation (actimeo of nfs(5))
    /// [default: 30 to 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    actimeo: Option<u64>,
    /// Most delegations that the server grants at one time
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    delegations_max: usize,
    /// Seed of chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the trace to this file, in the project's own format
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Draw the calls that are saved over the directories remembered (SVG)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write JSON, for programs
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<u64, String> {
    microseconds(text).ok_or_else(|| format!("`{text}` are no seconds, as 0.5 or 30"))
}

/// A row of the table.
struct PolicyOutcome {
    policy: PolicyName,
    cached_directories: usize,
    tally: SimulatedCalls,
    /// The calls of the same clients without delegations.
    before: SimulatedCalls,
}

/// Simulates, and prints the table.
///
/// # Errors
/// A trace cannot be read, or a file cannot be written.
pub fn command(options: &Options) -> Result<ExitCode> {
    ensure!(!options.cached_directories.contains(&0), "--cached-directories must be 1 at least");
    let (events, skipped) = options.events()?;
    ensure!(!events.is_empty(), "the trace has no event: is --format the right one?");
    if let Some(path) = &options.write {
        fs::write(path, super::write(&events)).with_context(|| path.display().to_string())?;
    }
    let rows = options.rows(&events);
    if let Some(path) = &options.plot {
        fs::write(path, drawn(&rows)).with_context(|| path.display().to_string())?;
    }
    let text = if options.json {
        format!("{:#}\n", as_json(&rows, events.len(), skipped))
    } else {
        as_text(options, &rows, (events.len(), skipped))
    };
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl Options {
    /// The events of all clients, and the number of lines that were left out.
    fn events(&self) -> Result<(Vec<Event>, usize)> {
        let (events, skipped) = match self.pattern {
            Some(pattern) => {
                return Ok((pattern.trace(self.seed, self.clients, self.rounds), 0));
            }
            None => self.read()?,
        };
        Ok((self.repeated(&events), skipped))
    }

    fn read(&self) -> Result<(Vec<Event>, usize)> {
        let (mut events, mut skipped) = (Vec::new(), 0);
        for (number, path) in (1..).zip(&self.traces) {
            let bytes = fs::read(path).with_context(|| path.display().to_string())?;
            let text = String::from_utf8_lossy(&bytes);
            if self.format == Format::Comity {
                let read = super::read(&text);
                events.extend(read.with_context(|| path.display().to_string())?);
                continue;
            }
            let actor = if self.local { Actor::Local } else { Actor::Client(number) };
            let imported = import::foreign(self.format, &text, actor);
            if imported.events.is_empty() {
                bail!("{}: no line is as {:?} writes it", path.display(), self.format);
            }
            events.extend(imported.events);
            skipped += imported.skipped;
        }
        events.sort_by_key(|event: &Event| event.at_microseconds);
        Ok((events, skipped))
    }

    /// Repeats the events for more clients.
    fn repeated(&self, events: &[Event]) -> Vec<Event> {
        let number = |event: &Event| match event.actor {
            Actor::Client(number) => number,
            Actor::Local => 0,
        };
        let known = events.iter().map(number).max().unwrap_or(0);
        let mut all = events.to_vec();
        for copy in 1..self.clients {
            let shift = Rng::branch(self.seed, copy.into()).below(SHIFT_MICROSECONDS);
            let moved = |event: &Event| {
                let Actor::Client(number) = event.actor else { return None };
                let actor = Actor::Client(number.saturating_add(copy.saturating_mul(known)));
                let at_microseconds = event.at_microseconds.saturating_add(shift);
                Some(Event { at_microseconds, actor, action: event.action.clone() })
            };
            all.extend(events.iter().filter_map(moved));
        }
        all.sort_by_key(|event| event.at_microseconds);
        all
    }

    fn rows(&self, events: &[Event]) -> Vec<PolicyOutcome> {
        use PolicyName::{Adaptive, Always, Never, SecondAsk};
        let all = [Never, Always, SecondAsk, Adaptive];
        let policies = if self.policy.is_empty() { &all[..] } else { &self.policy };
        let mut rows = Vec::new();
        for cached_directories in self.cached_directories.iter().copied() {
            let before = simulate(self.settings(Never, cached_directories), events);
            for policy in policies.iter().copied() {
                let tally = simulate(self.settings(policy, cached_directories), events);
                rows.push(PolicyOutcome { policy, cached_directories, tally, before });
            }
        }
        rows
    }

    fn settings(&self, policy: PolicyName, cached_directories: usize) -> Settings {
        let usual = Settings::default();
        let believed_microseconds =
            self.actimeo.map_or(usual.believed_microseconds, |time| (time, time));
        Settings {
            policy,
            cached_directories,
            believed_microseconds,
            notification_delay_microseconds: self.notify_delay,
            delegations_max: self.delegations_max,
        }
    }
}

impl PolicyOutcome {
    fn name(&self) -> String {
        use clap::ValueEnum as _;
        self.policy.to_possible_value().map_or_else(String::new, |name| name.get_name().to_owned())
    }

    /// Calls that happen only because of delegations.
    const fn caused(&self) -> u64 {
        let calls = &self.tally.calls;
        let again = calls.changes - self.before.calls.changes;
        calls.recalls + calls.returns + calls.notifications + again
    }
}

fn as_text(options: &Options, rows: &[PolicyOutcome], (events, skipped): (usize, usize)) -> String {
    let mut text = format!("{events} events");
    if skipped > 0 {
        // Writing to a String does not fail.
        let _ = write!(text, ", {skipped} lines left out");
    }
    let bound = match options.notify_delay {
        Some(delay) => format!("{} s under a delegation", delay as f64 / 1e6),
        None => "none under a delegation".to_owned(),
    };
    let _ = writeln!(text, "; staleness: {bound}, else the time for which clients believe\n");
    let _ = writeln!(
        text,
        "{:<11} {:>11} {:>9} {:>8} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>10} {:>7}",
        "policy",
        "directories",
        "calls",
        "saved",
        "LOOKUP",
        "GETATTR",
        "READDIR",
        "caused",
        "recalls",
        "held",
        "memory",
        "stale"
    );
    for row in rows {
        let SimulatedCalls { calls, held_max, stale_answers, .. } = row.tally;
        let _ = writeln!(
            text,
            "{:<11} {:>11} {:>9} {:>8} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>10} {:>7}",
            row.name(),
            row.cached_directories,
            calls.total(),
            number::percent(row.tally.saved(&row.before)),
            calls.lookups,
            calls.getattrs,
            calls.readdirs,
            row.caused(),
            calls.recalls,
            held_max,
            number::bytes((held_max * DELEGATION_BYTES) as f64),
            stale_answers,
        );
    }
    text + HISTORY
}

fn as_json(rows: &[PolicyOutcome], events: usize, skipped: usize) -> Value {
    let row = |row: &PolicyOutcome| {
        json!({
            "policy": row.name(),
            "cached_directories": row.cached_directories,
            "saved": row.tally.saved(&row.before),
            "caused": row.caused(),
            "memory_bytes": row.tally.held_max * DELEGATION_BYTES,
            "tally": row.tally,
            "without_delegations": row.before,
        })
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    json!({ "events": events, "skipped": skipped, "rows": rows })
}

/// The calls saved by each policy over the directories that a client remembers.
fn drawn(rows: &[PolicyOutcome]) -> String {
    let mut lines: Vec<plot::NamedPoints> = Vec::new();
    for row in rows.iter().filter(|row| row.policy != PolicyName::Never) {
        let point = (row.cached_directories as f64, row.tally.saved(&row.before));
        match lines.iter_mut().find(|(name, _)| *name == row.name()) {
            Some((_, points)) => points.push(point),
            None => lines.push((row.name(), vec![point])),
        }
    }
    lines.iter_mut().for_each(|(_, points)| points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let axes = ("directories that a client remembers", "calls saved");
    plot::parts("Calls saved by directory delegations", axes, &lines)
}

//! The command line of the simulator.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::import::{self, Format};
use super::table::{OutcomeTable, Variant, VariantOutcome};
use super::text::microseconds;
use super::{Actor, Event, Pattern, PolicyName, Settings, simulate};
use crate::rng::Rng;
use crate::stdout::say;

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
    /// second; may be given more than once
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: Vec<u32>,
    /// Rounds of a pattern
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Policies to try; may be given more than once [default: all]
    #[arg(long)]
    policy: Vec<PolicyName>,
    /// Most directories that a client remembers; may be given more than once
    #[arg(long, value_name = "N", default_value = "10000")]
    cached_directories: Vec<usize>,
    /// The server tells holders of changes, gathered for so long (CB_NOTIFY), instead of recalling;
    /// may be given more than once, and `recall` among them [default: recall]
    #[arg(long, value_name = "SECONDS", value_parser = OnChange::parse)]
    notify_delay: Vec<OnChange>,
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
    /// Draw the calls that are saved (SVG) over the directories remembered, the clients or the
    /// delays, of which several were given
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write JSON, for programs
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<u64, String> {
    microseconds(text).ok_or_else(|| format!("`{text}` are no seconds, as 0.5 or 30"))
}

/// The server's answer, for a holder, to a change of the directory by another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnChange {
    /// It recalls the delegation.
    Recall,
    /// It sends the changes of so many microseconds together (CB_NOTIFY).
    Notify(u64),
}

impl OnChange {
    fn parse(text: &str) -> Result<Self, String> {
        let delay = microseconds(text).map(Self::Notify);
        delay.or((text == "recall").then_some(Self::Recall)).ok_or_else(|| {
            format!("`{text}` is neither a number of seconds, as 0.5 or 30, nor `recall`")
        })
    }

    /// The delay of notifications in microseconds, if there are any.
    pub(super) const fn delay(self) -> Option<u64> {
        match self {
            Self::Recall => None,
            Self::Notify(delay) => Some(delay),
        }
    }
}

/// Simulates, and prints the table.
///
/// # Errors
/// A trace cannot be read, or a file cannot be written.
pub fn command(options: &Options) -> Result<ExitCode> {
    ensure!(!options.cached_directories.contains(&0), "--cached-directories must be 1 at least");
    let (trace, skipped) = options.trace()?;
    let events = options.events_of(options.fewest_clients(), &trace);
    ensure!(!events.is_empty(), "the trace has no event: is --format the right one?");
    if let Some(path) = &options.write {
        fs::write(path, super::write(&events)).with_context(|| path.display().to_string())?;
    }
    let table = OutcomeTable { rows: options.rows(&trace), events: events.len(), skipped };
    if let Some(path) = &options.plot {
        fs::write(path, table.plot()).with_context(|| path.display().to_string())?;
    }
    let text = if options.json { format!("{:#}\n", table.json()) } else { table.text() };
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl Options {
    /// The events of the files, and the number of lines that were left out; none for a pattern.
    fn trace(&self) -> Result<(Vec<Event>, usize)> {
        if self.pattern.is_some() { Ok((Vec::new(), 0)) } else { self.read() }
    }

    fn fewest_clients(&self) -> u32 {
        self.clients.iter().copied().min().unwrap_or(1)
    }

    /// The events of the pattern, or of so many clients for each one of the trace.
    fn events_of(&self, clients: u32, trace: &[Event]) -> Vec<Event> {
        match self.pattern {
            Some(pattern) => pattern.trace(self.seed, clients, self.rounds),
            None => self.repeated(clients, trace),
        }
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
    fn repeated(&self, clients: u32, events: &[Event]) -> Vec<Event> {
        let number = |event: &Event| match event.actor {
            Actor::Client(number) => number,
            Actor::Local => 0,
        };
        let known = events.iter().map(number).max().unwrap_or(0);
        let mut all = events.to_vec();
        for copy in 1..clients {
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

    fn rows(&self, trace: &[Event]) -> Vec<VariantOutcome> {
        let mut rows = Vec::new();
        for clients in self.clients.iter().copied() {
            let events = self.events_of(clients, trace);
            for cached_directories in self.cached_directories.iter().copied() {
                rows.extend(self.rows_of((clients, cached_directories), &events));
            }
        }
        rows
    }

    /// The rows of a number of clients that each remember a number of directories.
    fn rows_of(
        &self,
        (clients, cached_directories): (u32, usize),
        events: &[Event],
    ) -> Vec<VariantOutcome> {
        use PolicyName::{Adaptive, Always, Never, SecondAsk};
        let all = [Never, Always, SecondAsk, Adaptive];
        let policies = if self.policy.is_empty() { &all[..] } else { &self.policy };
        let recall = [OnChange::Recall];
        let on_changes =
            if self.notify_delay.is_empty() { &recall } else { &self.notify_delay[..] };
        let of = |policy, on_change| Variant { policy, clients, cached_directories, on_change };
        let before = simulate(self.settings(&of(Never, OnChange::Recall)), events);
        let variants = on_changes
            .iter()
            .flat_map(|on_change| policies.iter().map(move |policy| of(*policy, *on_change)));
        let outcome = |variant| {
            let tally = simulate(self.settings(&variant), events);
            VariantOutcome { variant, tally, before }
        };
        variants.map(outcome).collect()
    }

    fn settings(&self, variant: &Variant) -> Settings {
        let usual = Settings::default();
        let believed_microseconds =
            self.actimeo.map_or(usual.believed_microseconds, |time| (time, time));
        Settings {
            policy: variant.policy,
            cached_directories: variant.cached_directories,
            believed_microseconds,
            notification_delay_microseconds: variant.on_change.delay(),
            delegations_max: self.delegations_max,
        }
    }
}

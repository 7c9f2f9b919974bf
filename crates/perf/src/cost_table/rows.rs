use anyhow::Result;
use comity_bench::{InSession, Operation, Stable};

use super::line::{Bar, Line};
use super::measure::Figures;
use super::{Bench, measure, shape};

/// A row of the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    unit: &'static str,
    base_name: &'static str,
    how: How,
    must: Option<Bar>,
    best: Option<Bar>,
}

/// The way in which a row is measured.
enum How {
    /// Processor time of the server for each call or entry, all targets in turn.
    Cost(Operation),
    /// The row has a measurement of its own, in which all targets take turns.
    Special(fn(&Bench) -> Result<Figures>),
    /// Calls a second.
    Rate(Operation),
    /// Median time of a call, with one call outstanding.
    Latency(Operation),
    /// Comity under some circumstances, compared with itself under plain ones.
    Itself(fn(&Bench) -> Result<Itself>),
}

/// Figures of comity under some circumstances and under plain ones, one a round.
pub(super) struct Itself {
    pub(super) base: Vec<f64>,
    pub(super) comity: Vec<f64>,
}

const KIB4: u32 = 4096;
const MIB: u32 = 1 << 20;

/// The table. Multiples of raw are those of the project's goals for speed.
pub(super) const ROWS: &[Row] = &[
    cost("NULL", Operation::Null, 1.6, 1.4),
    cost("GETATTR", Operation::Getattr, 2.5, 2.0),
    cost("LOOKUP", Operation::Lookup, 2.2, 2.0),
    cost("ACCESS", Operation::Access, 2.5, 2.0),
    cost("READ 4 KiB", Operation::Read(KIB4), 1.8, 1.6),
    cost("READ 1 MiB", Operation::Read(MIB), 0.95, 0.8),
    cost("WRITE 4 KiB UNSTABLE", Operation::Write(KIB4, Stable::Unstable), 2.2, 2.0),
    cost("WRITE 1 MiB UNSTABLE", Operation::Write(MIB, Stable::Unstable), 1.1, 1.05),
    Row {
        name: "WRITE 4 KiB FILE_SYNC",
        unit: "calls/s",
        base_name: "raw",
        how: How::Rate(Operation::Write(KIB4, Stable::FileSync)),
        must: Some(Bar::AtLeastTimesGanesha(2.2)),
        best: Some(Bar::AtLeastTimesGanesha(4.0)),
    },
    Row {
        name: "CREATE, async export",
        unit: "us",
        base_name: "raw",
        how: How::Special(measure::create_cost),
        must: Some(Bar::TimesBase(2.2)),
        best: Some(Bar::TimesBase(1.8)),
    },
    Row {
        name: "CREATE, sync (only comity's)",
        unit: "calls/s",
        base_name: "raw",
        how: How::Special(measure::create_rate),
        must: None,
        best: None,
    },
    Row {
        name: "READDIRPLUS cold, an entry",
        unit: "us",
        base_name: "raw",
        how: How::Special(measure::cold_listing),
        must: Some(Bar::TimesBase(1.3)),
        best: None,
    },
    Row {
        name: "cold, raw takes no handles",
        unit: "us",
        base_name: "raw",
        how: How::Special(measure::cold_listing_without_handles),
        must: None,
        best: None,
    },
    Row {
        name: "READDIRPLUS warm, an entry",
        unit: "us",
        base_name: "raw",
        how: How::Cost(Operation::Readdirplus),
        must: Some(Bar::TimesGanesha(0.9)),
        best: Some(Bar::TimesBase(0.5)),
    },
    cost("v4.1 SEQUENCE+PUTFH+GETATTR", Operation::InSession(InSession::Getattr), 3.2, 2.7),
    cost("v4.1 READ 4 KiB", Operation::InSession(InSession::Read(KIB4)), 1.8, 1.6),
    cost("v4.1 OPEN, CLOSE", Operation::InSession(InSession::OpenClose), 4.2, 2.5),
    cost("v4.1 LOCK, LOCKU", Operation::InSession(InSession::LockUnlock), 2.0, 1.8),
    Row {
        name: "GETATTR one at a time, p50",
        unit: "us",
        base_name: "raw",
        how: How::Latency(Operation::Getattr),
        must: Some(Bar::TimesBase(1.25)),
        best: None,
    },
    itself("READDIRPLUS, two cores", "entries/us", "one core", shape::two_cores, MORE_CORES),
    itself("GETATTR, two cores", "us", "one core", shape::two_cores_cost, Bar::TimesBase(1.25)),
    itself("GETATTR in 100,000 files", "us", "in 1,000", shape::huge_directory, TWICE),
    Row {
        must: None,
        ..itself("raw: 100,000 by name", "us", "1,000 open", shape::huge_directory_raw, TWICE)
    },
    itself("GETATTR, 64 connections", "us", "4", shape::many_connections, Bar::TimesBase(1.1)),
    itself("memory of an idle connection", "KiB", "", shape::idle_connection, Bar::AtMost(4.0)),
    itself("memory at start", "MiB", "", shape::memory_at_start, Bar::AtMost(12.0)),
    Row { must: None, ..itself("threads at start", "", "", shape::threads, Bar::AtMost(0.0)) },
];

const MORE_CORES: Bar = Bar::AtLeastTimesBase(1.6);
const TWICE: Bar = Bar::TimesBase(2.0);

const fn cost(name: &'static str, operation: Operation, must: f64, best: f64) -> Row {
    Row {
        name,
        unit: "us",
        base_name: "raw",
        how: How::Cost(operation),
        must: Some(Bar::TimesBase(must)),
        best: Some(Bar::TimesBase(best)),
    }
}

const fn itself(
    name: &'static str,
    unit: &'static str,
    base_name: &'static str,
    how: fn(&Bench) -> Result<Itself>,
    must: Bar,
) -> Row {
    Row { name, unit, base_name, how: How::Itself(how), must: Some(must), best: None }
}

impl Row {
    pub(super) fn measure(&self, bench: &Bench) -> Result<Line> {
        let mut line = Line {
            name: self.name,
            unit: self.unit,
            base_name: self.base_name,
            base: Vec::new(),
            comity: Vec::new(),
            ganesha: Vec::new(),
            must: self.must,
            best: self.best,
        };
        let figures = match self.how {
            How::Cost(operation) => measure::cost(bench, operation)?,
            How::Special(measure) => measure(bench)?,
            How::Rate(operation) => measure::rate(bench, operation)?,
            How::Latency(operation) => measure::latency(bench, operation)?,
            How::Itself(how) => {
                let itself = how(bench)?;
                (line.base, line.comity) = (itself.base, itself.comity);
                return Ok(line);
            }
        };
        let mut figures = figures.into_iter();
        line.base = figures.next().unwrap_or_default();
        line.comity = figures.next().unwrap_or_default();
        line.ganesha = figures.next().unwrap_or_default();
        Ok(line)
    }
}

//! The tables of the screen as rows of text, with the numbers by which they are sorted.

use super::numbers::{bytes, percent, rate, time};
use super::readout::{ClientRow, EventRow, ExportRow, OperationRow, Readout, WaitRow};

/// One of the tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Tab {
    #[default]
    Operations,
    Clients,
    Exports,
    Events,
    Waits,
}

/// A table: column heads, widths, and rows.
pub(super) struct Rows {
    pub(super) heads: &'static [&'static str],
    /// Columns of the terminal; the first column of the table takes the rest.
    pub(super) widths: &'static [u16],
    pub(super) rows: Vec<TableRow>,
}

/// A row: its texts, and the numbers of the columns after the first.
pub(super) struct TableRow {
    pub(super) cells: Vec<String>,
    pub(super) numbers: Vec<f64>,
}

impl Tab {
    /// All tables, in the order of the screen.
    pub(super) const ALL: [Self; 5] =
        [Self::Operations, Self::Clients, Self::Exports, Self::Events, Self::Waits];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Operations => "Operations",
            Self::Clients => "Clients",
            Self::Exports => "Exports",
            Self::Events => "Events",
            Self::Waits => "Waits",
        }
    }

    pub(super) fn next(self) -> Self {
        self.at_distance(1)
    }

    pub(super) fn previous(self) -> Self {
        self.at_distance(Self::ALL.len() - 1)
    }

    fn at_distance(self, distance: usize) -> Self {
        let place = Self::ALL.iter().position(|tab| *tab == self).unwrap_or_default();
        Self::ALL[(place + distance) % Self::ALL.len()]
    }

    /// Returns the rows that contain `filter` in any column, without regard to case, sorted by the
    /// column `sorted_by` in descending order.
    pub(super) fn rows(self, readout: &Readout, filter: &str, sorted_by: usize) -> Rows {
        let mut table = self.all_rows(readout);
        let filter = filter.to_lowercase();
        let has =
            |row: &TableRow| row.cells.iter().any(|cell| cell.to_lowercase().contains(&filter));
        table.rows.retain(has);
        let column = sorted_by % (table.heads.len() - 1);
        let number = |row: &TableRow| row.numbers.get(column).copied().unwrap_or_default();
        table.rows.sort_by(|one, other| number(other).total_cmp(&number(one)));
        table
    }

    fn all_rows(self, readout: &Readout) -> Rows {
        let (heads, widths, rows): (&[_], &[_], Vec<TableRow>) = match self {
            Self::Operations => (
                &["OPERATION", "/s", "/s 1 min", "FAILED/s", "MEDIAN", "P99"],
                &[10, 10, 10, 10, 10],
                readout.operations.iter().map(operation).collect(),
            ),
            Self::Clients => (
                &["CLIENT", "CALLS/s", "1 min", "SERVICE", "IN/s", "OUT/s", "CONNECTED"],
                &[8, 8, 8, 9, 9, 10],
                readout.clients.iter().map(client).collect(),
            ),
            Self::Exports => (
                &["EXPORT", "CALLS/s", "1 min", "SERVICE"],
                &[10, 10, 10],
                readout.exports.iter().map(export).collect(),
            ),
            Self::Events => (
                &["EVENT", "/s", "/s 1 min"],
                &[10, 10],
                readout.events.iter().map(event).collect(),
            ),
            Self::Waits => (
                &["FILE", "SECONDS", "FOR", "CLIENT", "WAITS FOR"],
                &[9, 11, 17, 17],
                readout.waits.iter().map(wait).collect(),
            ),
        };
        Rows { heads, widths, rows }
    }
}

fn row<const COLUMNS: usize>(name: String, columns: [(String, f64); COLUMNS]) -> TableRow {
    let (texts, numbers): (Vec<_>, _) = columns.into_iter().unzip();
    TableRow { cells: std::iter::once(name).chain(texts).collect(), numbers }
}

fn rated(number: f64) -> (String, f64) {
    (rate(number), number)
}

fn sized(number: f64) -> (String, f64) {
    (bytes(number), number)
}

fn timed(seconds: Option<f64>) -> (String, f64) {
    (time(seconds), seconds.unwrap_or_default())
}

/// The time of calls, in percent of a thread.
fn served(seconds_per_second: Option<f64>) -> (String, f64) {
    let text = seconds_per_second.map_or_else(|| "-".to_owned(), percent);
    (text, seconds_per_second.unwrap_or_default())
}

fn operation(of: &OperationRow) -> TableRow {
    let version = if of.program == "nfs" { format!("v{} ", of.version) } else { String::new() };
    row(
        format!("{} {version}{}", of.program, of.operation),
        [
            rated(of.now),
            rated(of.minute),
            rated(of.failed),
            timed(of.median_seconds),
            timed(of.p99_seconds),
        ],
    )
}

fn client(of: &ClientRow) -> TableRow {
    let connections = of.connections.unwrap_or_default();
    row(
        of.client.clone(),
        [
            rated(of.now.calls_per_second),
            rated(of.minute.calls_per_second),
            served(of.minute.service_seconds_per_second),
            sized(of.now.received_bytes_per_second),
            sized(of.now.sent_bytes_per_second),
            (connections.to_string(), connections as f64),
        ],
    )
}

fn export(of: &ExportRow) -> TableRow {
    let service = served(Some(of.service_seconds_per_second));
    row(of.export.clone(), [rated(of.now), rated(of.minute), service])
}

fn event(of: &EventRow) -> TableRow {
    row(of.event.clone(), [rated(of.now), rated(of.minute)])
}

fn wait(of: &WaitRow) -> TableRow {
    let file = match (&of.export, of.fileid) {
        (Some(export), Some(fileid)) => format!("{export} fileid {fileid}"),
        (Some(export), None) => export.clone(),
        _ => "not exported any more".to_owned(),
    };
    let named = |name: &Option<String>| name.clone().unwrap_or_else(|| "this server".to_owned());
    row(
        file,
        [
            (of.age_seconds.to_string(), of.age_seconds as f64),
            (of.kind.clone(), 0.0),
            (named(&of.client), 0.0),
            (named(&of.waits_for), 0.0),
        ],
    )
}

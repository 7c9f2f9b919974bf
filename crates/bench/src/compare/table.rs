//! A comparison as text and as JSON.

use std::fmt::Write as _;

use anyhow::Result;

use super::rows::{Comparison, Row};
use crate::number;
use crate::statistics::Verdict;

/// The table for a terminal.
pub(super) fn text(found: &Comparison, only_distinct: bool) -> String {
    let shown: Vec<&Row> =
        found.rows.iter().filter(|row| !only_distinct || row.gain.is_distinct()).collect();
    let mut cells =
        vec![["workload", "target", "figure", "A", "B", "B better", "verdict"].map(str::to_owned)];
    cells.extend(shown.iter().map(|row| line(row)));
    let mut out = aligned(&cells);
    if shown.len() < found.rows.len() {
        let _ = writeln!(out, "{} more cannot be told apart", found.rows.len() - shown.len());
    }
    for reason in &found.left_out {
        let _ = writeln!(out, "not compared: {reason}");
    }
    out
}

fn line(row: &Row) -> [String; 7] {
    let interval = row.gain.interval;
    let gain = match row.gain.pairs {
        0 | 1 => format!("{:.2}x", interval.center),
        _ => format!("{:.2}x ({:.2} to {:.2})", interval.center, interval.low, interval.high),
    };
    [
        row.workload.clone(),
        row.target.clone(),
        row.figure.clone(),
        number::of_unit(row.before.summary.mean, row.unit),
        number::of_unit(row.after.summary.mean, row.unit),
        gain,
        verdict(row).to_owned(),
    ]
}

fn verdict(row: &Row) -> &'static str {
    let few = |cell: &crate::report::aggregate::Cell| cell.summary.count < 2;
    if few(&row.before) || few(&row.after) {
        return "one round: no result";
    }
    let either = |is: fn(&Verdict) -> bool| is(&row.before.verdict) || is(&row.after.verdict);
    match (row.gain.is_distinct(), row.gain.interval.center > 1.0) {
        (true, true) => "better",
        (true, false) => "worse",
        _ if either(|verdict| matches!(verdict, Verdict::Few { .. })) => "too few rounds to tell",
        _ if either(|verdict| !verdict.is_steady()) => "noisy, not told apart",
        _ => "the same",
    }
}

/// Aligns columns: words to the left, numbers (from the fourth column to the last but one) to the
/// right.
fn aligned(cells: &[[String; 7]]) -> String {
    let width =
        |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut out = String::new();
    for row in cells {
        let mut line = String::new();
        for (column, text) in row.iter().enumerate() {
            let width = widths[column];
            let _ = match column {
                3..=5 => write!(line, "{text:>width$}  "),
                _ => write!(line, "{text:<width$}  "),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// All rows for programs.
pub(super) fn json(found: &Comparison) -> Result<String> {
    let row = |row: &Row| {
        let interval = row.gain.interval;
        let end = |value: f64| value.is_finite().then_some(value);
        serde_json::json!({
            "workload": row.workload,
            "target": row.target,
            "figure": row.figure,
            "unit": row.unit,
            "before": row.before.values(),
            "after": row.after.values(),
            "gain": interval.center,
            "gain_low": end(interval.low),
            "gain_high": end(interval.high),
            "verdict": verdict(row),
        })
    };
    let rows: Vec<_> = found.rows.iter().map(row).collect();
    let all = serde_json::json!({ "rows": rows, "not_compared": found.left_out });
    Ok(format!("{}\n", serde_json::to_string_pretty(&all)?))
}

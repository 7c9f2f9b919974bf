//! Rows of a table that have a figure and a bound.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::row_options::RowOptions;

/// The name of a measure, by which it is chosen, and its function.
pub(crate) type Measure<B> = (&'static str, fn(&B) -> Result<Vec<JudgedFigure>>);

/// A row of the table: a figure and its bound.
#[derive(Debug, Clone)]
pub(crate) struct JudgedFigure {
    name: String,
    found: f64,
    /// The least and the greatest figure of the rounds, of which the found one is the median.
    ends: Option<(f64, f64)>,
    bound: Option<Bound>,
}

/// The bound of a figure.
#[derive(Debug, Clone, Copy)]
enum Bound {
    Most(f64),
    Least(f64),
}

impl JudgedFigure {
    /// A figure that may be at most this.
    pub(crate) fn bounded(name: impl Into<String>, found: f64, most: f64) -> Self {
        Self { bound: Some(Bound::Most(most)), ..Self::shown(name, found) }
    }

    /// A figure that must be at least this.
    pub(crate) fn at_least(name: impl Into<String>, found: f64, least: f64) -> Self {
        Self { bound: Some(Bound::Least(least)), ..Self::shown(name, found) }
    }

    /// A figure that is shown and not judged.
    pub(crate) fn shown(name: impl Into<String>, found: f64) -> Self {
        Self { name: name.into(), found, ends: None, bound: None }
    }

    /// Shows the ends of the rounds, too.
    pub(crate) fn of_rounds(self, rounds: &[f64]) -> Self {
        let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { ends: (!rounds.is_empty()).then_some((least, greatest)), ..self }
    }

    /// Returns whether the figure is within its bound.
    fn is_met(&self) -> bool {
        match self.bound {
            None => true,
            Some(Bound::Most(most)) => self.found <= most,
            Some(Bound::Least(least)) => self.found >= least,
        }
    }

    /// Prints the row.
    fn print(&self) {
        let bound = match self.bound {
            None => "-".to_owned(),
            Some(Bound::Most(most)) => figure(most),
            Some(Bound::Least(least)) => format!(">={}", figure(least)),
        };
        let verdict = match self.bound {
            None => "-",
            Some(_) if self.is_met() => "met",
            Some(_) => "MISSED",
        };
        let ends =
            self.ends.map(|(least, most)| format!(" ({} to {})", figure(least), figure(most)));
        let found = figure(self.found);
        println!("{:68} {found:>10} {bound:>10} {verdict}{}", self.name, ends.unwrap_or_default());
    }
}

/// Takes the measures that are wanted, prints their rows, and writes them to the file `json`, too.
/// Returns whether all figures are within their bounds.
///
/// # Errors
/// A measure fails, or the file cannot be written.
pub(crate) fn run<B>(
    (measures, bench): (&[Measure<B>], &B),
    options: &RowOptions,
    json: Option<&Path>,
) -> Result<bool> {
    println!("{:68} {:>10} {:>10}", "", "found", "at most");
    let mut rows = Vec::new();
    for (name, measure) in measures.iter().filter(|(name, _)| options.is_wanted(name)) {
        let measured = measure(bench).with_context(|| (*name).to_owned())?;
        measured.iter().for_each(JudgedFigure::print);
        rows.extend(measured);
    }
    if let Some(path) = json {
        fs::write(path, as_json(&rows)).with_context(|| path.display().to_string())?;
    }
    Ok(rows.iter().all(JudgedFigure::is_met))
}

/// The rows for programs.
fn as_json(rows: &[JudgedFigure]) -> String {
    let one = |figure: &JudgedFigure| {
        let JudgedFigure { name, found, ends, bound } = figure;
        let (most, least) = match bound {
            None => (None, None),
            Some(Bound::Most(most)) => (Some(most), None),
            Some(Bound::Least(least)) => (None, Some(least)),
        };
        json!({
            "name": name, "found": found, "rounds": ends, "at_most": most, "at_least": least,
            "met": figure.is_met(),
        })
    };
    let all: Vec<Value> = rows.iter().map(one).collect();
    format!("{:#}\n", Value::from(all))
}

fn figure(number: f64) -> String {
    match number {
        whole if whole.fract() == 0.0 => format!("{whole}"),
        small if small.abs() < 0.1 => format!("{small:.4}"),
        number => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_beyond_its_bound_is_missed_and_one_without_a_bound_is_not() {
        let bounded = JudgedFigure::bounded;
        let rows = [bounded("a", 1.0, 1.0), bounded("b", 1.1, 1.0), JudgedFigure::shown("c", 9.0)];
        assert_eq!(rows.each_ref().map(JudgedFigure::is_met), [true, false, true]);
        let least = JudgedFigure::at_least;
        let rows = rows.into_iter().chain([least("d", 1.0, 1.0), least("e", 0.9, 1.0)]);
        let rows: Vec<_> = rows.collect();
        assert_eq!((rows[3].is_met(), rows[4].is_met()), (true, false));
        assert!(!bounded("nothing was measured", f64::NAN, 1.0).is_met());
        assert!(!least("nothing was measured", f64::NAN, 1.0).is_met());
        let parsed: Value = serde_json::from_str(&as_json(&rows)).unwrap();
        assert_eq!(parsed.pointer("/1/met"), Some(&json!(false)));
        assert_eq!(parsed.pointer("/1/at_most"), Some(&json!(1.0)));
        assert_eq!(parsed.pointer("/4/at_least"), Some(&json!(1.0)));
    }

    #[test]
    fn the_ends_of_the_rounds_are_told() {
        let row = JudgedFigure::shown("a", 2.0).of_rounds(&[2.0, 1.0, 4.0]);
        let parsed: Value = serde_json::from_str(&as_json(&[row])).unwrap();
        assert_eq!(parsed.pointer("/0/rounds"), Some(&json!([1.0, 4.0])));
    }
}

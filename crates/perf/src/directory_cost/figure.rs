use serde_json::{Value, json};

/// A row of the table: a figure and the most that it may be.
#[derive(Debug, Clone)]
pub(super) struct JudgedFigure {
    name: String,
    found: f64,
    most: Option<f64>,
}

impl JudgedFigure {
    /// A figure with a bound.
    pub(super) fn bounded(name: impl Into<String>, found: f64, most: f64) -> Self {
        Self { name: name.into(), found, most: Some(most) }
    }

    /// A figure that is shown and not judged.
    pub(super) fn shown(name: impl Into<String>, found: f64) -> Self {
        Self { name: name.into(), found, most: None }
    }

    /// Returns whether the figure is within its bound.
    pub(super) fn is_met(&self) -> bool {
        self.most.is_none_or(|most| self.found <= most)
    }

    /// Prints the row.
    pub(super) fn print(&self) {
        let most = self.most.map_or_else(|| "-".to_owned(), figure);
        let verdict = match self.most {
            None => "-",
            Some(_) if self.is_met() => "met",
            Some(_) => "MISSED",
        };
        println!("{:68} {:>10} {most:>10} {verdict}", self.name, figure(self.found));
    }
}

/// Prints the names of the columns.
pub(super) fn print_header() {
    println!("{:68} {:>10} {:>10}", "", "found", "at most");
}

/// The rows for programs.
pub(super) fn as_json(rows: &[JudgedFigure]) -> String {
    let one = |figure: &JudgedFigure| {
        let JudgedFigure { name, found, most } = figure;
        json!({ "name": name, "found": found, "at_most": most, "met": figure.is_met() })
    };
    let all: Vec<Value> = rows.iter().map(one).collect();
    format!("{:#}\n", Value::from(all))
}

fn figure(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number}") } else { format!("{number:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_above_its_bound_is_missed_and_one_without_a_bound_is_not() {
        let bounded = JudgedFigure::bounded;
        let rows = [bounded("a", 1.0, 1.0), bounded("b", 1.1, 1.0), JudgedFigure::shown("c", 9.0)];
        assert_eq!(rows.each_ref().map(JudgedFigure::is_met), [true, false, true]);
        assert!(!bounded("nothing was measured", f64::NAN, 1.0).is_met());
        let parsed: Value = serde_json::from_str(&as_json(&rows)).unwrap();
        assert_eq!(parsed.pointer("/1/met"), Some(&json!(false)));
    }
}

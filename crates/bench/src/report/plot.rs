//! Single plots for commands that write no report.

use super::chart::{Chart, Direction, Format, Series, Spot, Style};
use super::scale::Kind;
use crate::number;

/// A series of a plot: its name, and its points in ascending order across.
pub(crate) type NamedPoints = (String, Vec<(f64, f64)>);

/// Draws lines as an SVG file; the vertical values are fractions.
#[must_use]
pub(crate) fn parts(title: &str, (across, up): (&str, &str), lines: &[NamedPoints]) -> String {
    let series = lines.iter().enumerate().map(|(number, (name, points))| {
        let spot = |(x, y): &(f64, f64)| {
            let tip = format!("{name}, {} {across}: {}", number::plain(*x), number::percent(*y));
            Spot { x: *x, y: *y, ends: None, tip }
        };
        let points = points.iter().map(spot).collect();
        Series { name: name.clone(), number, style: Style::Joined, points }
    });
    let chart = Chart {
        title: title.to_owned(),
        about: format!("{up} over {across}"),
        size: (560.0, 320.0),
        x: direction(across, Kind::Fitting, number::plain),
        y: direction(up, Kind::Linear, number::percent),
        series: series.collect(),
        bands: Vec::new(),
    };
    chart.draw().file()
}

/// The measured and the predicted points of a series, in ascending order across.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The name in the legend.
    pub name: String,
    /// The measured points.
    pub measured: Vec<(f64, f64)>,
    /// The predicted points.
    pub predicted: Vec<(f64, f64)>,
}

/// Draws signs where something was measured, and thin lines where it was predicted, as an SVG file.
/// The horizontal values are fractions.
#[must_use]
pub fn comparison(title: &str, (across, up): (&str, &str), all: &[Compared]) -> String {
    let chart = Chart {
        title: title.to_owned(),
        about: format!("{up} over {across}: signs are measured, lines are predicted"),
        size: (560.0, 320.0),
        x: direction(across, Kind::Linear, number::percent),
        y: direction(up, Kind::Fitting, number::plain),
        series: all.iter().enumerate().flat_map(compared).collect(),
        bands: Vec::new(),
    };
    chart.draw().file()
}

fn compared((number, compared): (usize, &Compared)) -> [Series; 2] {
    let series = |style, what: &str, points: &[(f64, f64)]| {
        let spot = |(x, y): &(f64, f64)| {
            let name = &compared.name;
            let tip = format!("{name}, {what}: {} at {}", number::plain(*y), number::percent(*x));
            Spot { x: *x, y: *y, ends: None, tip }
        };
        let points = points.iter().map(spot).collect();
        Series { name: compared.name.clone(), number, style, points }
    };
    [
        series(Style::Predicted, "predicted", &compared.predicted),
        series(Style::Scattered, "measured", &compared.measured),
    ]
}

fn direction(label: &str, kind: Kind, format: Format) -> Direction {
    Direction { label: label.to_owned(), kind, format, ticks: None }
}

//! A single plot for commands that write no report.

use super::chart::{Chart, Direction, Series, Spot, Style};
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
    let direction = |label: &str, kind, format| {
        let label = label.to_owned();
        Direction { label, kind, format, ticks: None }
    };
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

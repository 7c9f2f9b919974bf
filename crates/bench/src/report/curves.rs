//! Figures that are curves: those measured at three or more values of a number, such as 1, 10, 100
//! and 1,000 files.

use std::collections::BTreeSet;

use super::aggregate::Line;
use super::bars::told;
use super::chart::{Chart, Direction, Series, Spot, Style};
use super::scale::Kind;
use crate::number;
use crate::suite::{Better, Place};

/// Fewest points of a curve.
const PLACES_MIN: usize = 3;

/// Lines of one metric that differ in one number.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// The name of the measure.
    name: String,
    /// The coordinate in which they differ.
    over: String,
    lines: Vec<(f64, &'a Line)>,
}

/// Splits lines into curves and single figures.
#[must_use]
pub(super) fn split<'a>(lines: &[&'a Line]) -> (Vec<Group<'a>>, Vec<&'a Line>) {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut others = Vec::new();
    for line in lines {
        let Some((over, place)) = coordinate(lines, line) else {
            others.push(*line);
            continue;
        };
        let name = name(line, &over);
        match groups.iter_mut().find(|group| group.name == name && group.over == over) {
            Some(group) => group.lines.push((place, line)),
            None => groups.push(Group { name, over, lines: vec![(place, line)] }),
        }
    }
    let (curves, few): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| group.lines.len() >= PLACES_MIN);
    others.extend(few.iter().flat_map(|group| group.lines.iter().map(|(_, line)| *line)));
    (curves, others)
}

fn name(line: &Line, over: &str) -> String {
    let rest = line.circumstances(&[over]);
    if rest.is_empty() { line.metric.clone() } else { format!("{}, {rest}", line.metric) }
}

/// The numeric coordinate in which lines of the same metric differ most, and its value for this
/// line.
fn coordinate(lines: &[&Line], line: &Line) -> Option<(String, f64)> {
    let places = |name: &str| -> usize {
        let alike = lines.iter().filter(|other| other.metric == line.metric);
        let found: BTreeSet<String> =
            alike.filter_map(|other| other.at.get(name).map(ToString::to_string)).collect();
        found.len()
    };
    let numbers = line.at.iter().filter_map(|(name, place)| match place {
        Place::Number(value) => Some((name, *value)),
        Place::Word(_) => None,
    });
    let (name, value) = numbers.max_by_key(|(name, _)| places(name))?;
    (places(name) >= PLACES_MIN).then(|| (name.clone(), value))
}

impl Group<'_> {
    /// The curves of all targets.
    #[must_use]
    pub(super) fn chart(&self, targets: &[String]) -> Chart {
        let unit = self.lines[0].1.unit;
        let better = match unit.better() {
            Better::Higher => "higher is better",
            Better::Lower => "lower is better",
            Better::Neither => "told, not judged",
        };
        let curves = targets.iter().enumerate().map(|(number, name)| self.curve(number, name));
        let series = curves.chain([self.history()]).filter(|series| !series.points.is_empty());
        Chart {
            title: format!("{} by {}", self.name, self.over),
            about: format!("Mean and 95 % interval of each target; {better}"),
            size: (458.0, 270.0),
            x: Direction {
                label: self.over.clone(),
                kind: Kind::Fitting,
                format: number::plain,
                ticks: None,
            },
            y: Direction {
                label: better.to_owned(),
                kind: Kind::Fitting,
                format: number::formatter(unit),
                ticks: None,
            },
            series: series.collect(),
            bands: Vec::new(),
        }
    }

    fn curve(&self, number: usize, name: &str) -> Series {
        let spot = |(x, line): &(f64, &Line)| {
            let cell = line.cells.get(number)?.as_ref()?;
            let place = number::plain(*x);
            let tip = format!("{name}, {} {place}: {}", self.over, told(cell, line.unit));
            let ends = cell.interval.map(|interval| (interval.low, interval.high));
            Some(Spot { x: *x, y: cell.summary.mean, ends, tip })
        };
        let mut points: Vec<Spot> = self.lines.iter().filter_map(spot).collect();
        points.sort_unstable_by(|a, b| a.x.total_cmp(&b.x));
        Series { name: name.to_owned(), number, style: Style::Joined, points }
    }

    fn history(&self) -> Series {
        let spots = self.lines.iter().flat_map(|(x, line)| {
            line.history.iter().map(|figure| {
                let value = number::of_unit(figure.value, figure.unit);
                let tip = format!("original work: {value}, {} ({})", figure.system, figure.source);
                Spot { x: *x, y: figure.value, ends: None, tip }
            })
        });
        let name = "original work".to_owned();
        Series { name, number: 0, style: Style::History, points: spots.collect() }
    }
}

//! Curves: points of several series along an axis, with intervals.

use super::legend;
use super::scale::{Kind, Scale};
use super::svg::{Anchor, SERIES, Svg, text_width};

/// The format of a number on an axis.
pub(super) type Format = fn(f64) -> String;

/// A chart.
#[derive(Debug, Clone)]
pub(super) struct Chart {
    /// The title of the chart.
    pub(super) title: String,
    /// The description for screen readers.
    pub(super) about: String,
    /// The size of the chart in pixels, without the legend.
    pub(super) size: (f64, f64),
    /// The horizontal axis.
    pub(super) x: Direction,
    /// The vertical axis.
    pub(super) y: Direction,
    /// The series.
    pub(super) series: Vec<Series>,
    /// Shaded ranges of the horizontal axis, with their names.
    pub(super) bands: Vec<(f64, f64, String)>,
}

/// An axis of a chart.
#[derive(Debug, Clone)]
pub(super) struct Direction {
    /// The title.
    pub(super) label: String,
    /// The kind of scale.
    pub(super) kind: Kind,
    /// The format of the numbers on the axis.
    pub(super) format: Format,
    /// The values of the grid lines, if they are not round numbers.
    pub(super) ticks: Option<Vec<f64>>,
}

/// Points that belong together.
#[derive(Debug, Clone)]
pub(super) struct Series {
    /// The title.
    pub(super) name: String,
    /// The number of the series, which decides its colour, sign and dashes.
    pub(super) number: usize,
    /// Its style.
    pub(super) style: Style,
    /// The points, ordered by their horizontal values.
    pub(super) points: Vec<Spot>,
}

/// The style of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Signs joined by a line.
    Joined,
    /// A line through points that are too many for signs.
    Dense,
    /// Signs alone.
    Scattered,
    /// A thin line to compare with, not in the legend.
    Guide,
    /// A thin line in the colour of its series, not in the legend.
    Predicted,
    /// Figures of the original work.
    History,
}

/// A point.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    /// The horizontal value.
    pub(super) x: f64,
    /// The vertical value.
    pub(super) y: f64,
    /// The ends of the interval.
    pub(super) ends: Option<(f64, f64)>,
    /// The text of its tooltip.
    pub(super) tip: String,
}

const BOTTOM: f64 = 42.0;
const TOP: f64 = 22.0;
const RIGHT: f64 = 14.0;

impl Chart {
    /// Draws the chart.
    #[must_use]
    pub(super) fn draw(&self) -> Svg {
        let named = self
            .series
            .iter()
            .filter(|s| !matches!(s.style, Style::Guide | Style::Predicted | Style::History));
        let names: Vec<(usize, String)> = named.map(|s| (s.number, s.name.clone())).collect();
        let has_history = self.series.iter().any(|series| series.style == Style::History);
        let legend = legend::height(self.size.0, &names, has_history);
        let mut svg = Svg::new((self.size.0, self.size.1 + legend), &self.title, &self.about);
        legend::draw(&mut svg, (0.0, 0.0, self.size.0), &names, has_history);
        let (x, y) = self.scales(legend + TOP);
        self.frame(&mut svg, &x, &y);
        for series in &self.series {
            draw(&mut svg, series, &x, &y);
        }
        svg
    }

    /// The scales of both axes; `top` is the position of the highest line.
    fn scales(&self, top: f64) -> (Scale, Scale) {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let ups: Vec<f64> = all().map(|point| point.y).collect();
        let (low, high) = (top + self.size.1 - TOP - BOTTOM, top);
        let y = Scale::new(self.y.kind, &ups, (low, high));
        let ticks = self.y_ticks(&y).into_iter();
        let widest = ticks.map(|tick| text_width(&(self.y.format)(tick)));
        let left = widest.fold(20.0, f64::max) + 10.0;
        let across: Vec<f64> = all().map(|point| point.x).collect();
        let least = across.iter().copied().fold(f64::INFINITY, f64::min);
        let most = across.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let wide = Scale::new(self.x.kind, &across, (0.0, 1.0)).is_logarithmic();
        let ends = match least < most {
            true => (if wide || least > most / 4.0 { least } else { least.min(0.0) }, most),
            false if least.is_finite() => (least * 0.5, least.max(0.5) * 1.5),
            false => (1.0, 2.0),
        };
        (Scale::between(wide, ends, (left + 6.0, self.size.0 - RIGHT - 6.0)), y)
    }

    fn y_ticks(&self, y: &Scale) -> Vec<f64> {
        self.y.ticks.clone().unwrap_or_else(|| y.ticks(5))
    }

    fn frame(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let (left, right) = (x.at(f64::MIN) - 6.0, x.at(f64::MAX) + 6.0);
        let (bottom, top) = (y.at(f64::MIN), y.at(f64::MAX));
        for (from, to, name) in &self.bands {
            let (from, to) = (x.at(*from), x.at(*to));
            svg.mark(name, |svg| {
                svg.rectangle("band", (from - 3.0, top), (to - from + 6.0, bottom - top));
            });
        }
        for tick in self.y_ticks(y) {
            let place = y.at(tick);
            svg.line("grid", (left, place), (right, place));
            svg.text("tick", (left - 6.0, place + 4.0), Anchor::End, &(self.y.format)(tick));
        }
        svg.line("axis", (left, bottom), (right, bottom));
        self.x_ticks(svg, x, bottom);
        svg.text("name", (left - 6.0, top - 10.0), Anchor::Start, &self.y_label(y));
        svg.text("name", (right, bottom + 36.0), Anchor::End, &self.x_label(x));
    }

    fn x_ticks(&self, svg: &mut Svg, x: &Scale, bottom: f64) {
        let mut free_from = f64::NEG_INFINITY;
        let ticks = self.x.ticks.clone().unwrap_or_else(|| x.ticks(6));
        for tick in ticks.into_iter().filter(|tick| x.covers(*tick)) {
            let (place, text) = (x.at(tick), (self.x.format)(tick));
            svg.line("axis", (place, bottom), (place, bottom + 4.0));
            let half = text_width(&text) / 2.0;
            if place - half > free_from {
                svg.text("tick", (place, bottom + 18.0), Anchor::Middle, &text);
                free_from = place + half + 6.0;
            }
        }
    }

    fn y_label(&self, y: &Scale) -> String {
        let log = if y.is_logarithmic() { " (logarithmic)" } else { "" };
        format!("{}{log}", self.y.label)
    }

    fn x_label(&self, x: &Scale) -> String {
        let log = if x.is_logarithmic() && self.x.ticks.is_none() { " (logarithmic)" } else { "" };
        format!("{}{log}", self.x.label)
    }
}

fn draw(svg: &mut Svg, series: &Series, x: &Scale, y: &Scale) {
    let places: Vec<(f64, f64)> =
        series.points.iter().map(|spot| (x.at(spot.x), y.at(spot.y))).collect();
    let colour = series.number % SERIES;
    match series.style {
        Style::Joined | Style::Dense => svg.path(&format!("curve stroke s{colour}"), &places),
        Style::Guide => svg.path("guide", &places),
        Style::Predicted => svg.path(&format!("guide stroke s{colour}"), &places),
        Style::Scattered | Style::History => {}
    }
    if matches!(series.style, Style::Guide | Style::Predicted) {
        return;
    }
    for (spot, place) in series.points.iter().zip(places) {
        svg.mark(&spot.tip, |svg| {
            if let Some((low, high)) = spot.ends {
                let class = format!("spread stroke s{colour}");
                svg.line(&class, (place.0, y.at(low)), (place.0, y.at(high)));
            }
            match series.style {
                Style::History => svg.history(place),
                Style::Dense => svg.rectangle("touch", (place.0 - 4.0, place.1 - 8.0), (8.0, 16.0)),
                _ => svg.sign(series.number, place),
            }
        });
    }
}

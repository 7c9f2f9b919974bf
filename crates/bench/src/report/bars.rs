//! Figures side by side: a bar for each target with its interval, and the original work's figures.

use super::aggregate::{Cell, Line};
use super::legend;
use super::scale::{Kind, Scale};
use super::svg::{Anchor, SERIES, Svg, text_width};
use crate::number;
use crate::suite::{Better, Unit};

const WIDTH: f64 = 940.0;
const BAR: f64 = 15.0;
const GAP: f64 = 12.0;
const RIGHT: f64 = 96.0;
const LABEL_MAX: f64 = 280.0;

/// Draws lines of one unit. Bars begin at 0; if values span too much for that, points on a
/// logarithmic scale are drawn instead.
///
/// # Panics Never: no lines give an empty drawing.
#[must_use]
pub(super) fn bars(title: &str, lines: &[&Line], targets: &[String]) -> Svg {
    let unit = lines.first().map_or(Unit::Count, |line| line.unit);
    let names: Vec<(usize, String)> = targets.iter().cloned().enumerate().collect();
    let has_history = lines.iter().any(|line| !line.history.is_empty());
    let legend = legend::height(WIDTH, &names, has_history);
    let rows: f64 = lines.iter().map(|line| height(line)).sum();
    let mut svg = Svg::new((WIDTH, legend + rows + 34.0), title, &about(lines, targets, unit));
    legend::draw(&mut svg, (0.0, 0.0, WIDTH), &names, has_history);
    let left = lines.iter().map(|line| text_width(&label(line, lines))).fold(60.0, f64::max);
    let left = left.min(LABEL_MAX) + 12.0;
    let scale = scale(lines, (left, WIDTH - RIGHT));
    grid(&mut svg, &scale, unit, (legend, legend + rows));
    let mut top = legend;
    for line in lines {
        name(&mut svg, line, &label(line, lines), (left, top));
        row(&mut svg, line, &scale, top, targets);
        top += height(line);
    }
    svg
}

/// Returns the label that distinguishes a line from the others of the drawing; the title says what
/// all have in common.
fn label(line: &Line, lines: &[&Line]) -> String {
    let at = line.circumstances(&[]);
    let is_shared = lines.iter().all(|other| other.metric == line.metric);
    if is_shared && !at.is_empty() { at } else { line.label() }
}

fn height(line: &Line) -> f64 {
    line.cells.iter().flatten().count().max(1) as f64 * (BAR + 3.0) + GAP
}

fn about(lines: &[&Line], targets: &[String], unit: Unit) -> String {
    let better = match unit.better() {
        Better::Higher => "longer is better",
        Better::Lower => "shorter is better",
        Better::Neither => "told, not judged",
    };
    format!(
        "{} figures of {}: mean and 95 % interval; {better}. The table below has the numbers.",
        lines.len(),
        targets.join(", ")
    )
}

/// The scale over all means and upper ends, and over the figures of the original if these do not
/// squeeze the others.
fn scale(lines: &[&Line], ends: (f64, f64)) -> Scale {
    let cells = || lines.iter().flat_map(|line| line.cells.iter().flatten());
    let mut values: Vec<f64> = cells().map(|cell| cell.summary.mean).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let uppers = cells().filter_map(|cell| cell.interval).map(|interval| interval.high);
    values.extend(uppers.filter(|high| *high < 2.0 * most));
    let figures = lines.iter().flat_map(|line| line.history.iter().map(|figure| figure.value));
    let old: Vec<f64> = figures.collect();
    let with_old: Vec<f64> = values.iter().chain(&old).copied().collect();
    let all = Scale::new(Kind::Fitting, &with_old, ends);
    let own = Scale::new(Kind::Fitting, &values, ends);
    if all.is_logarithmic() == own.is_logarithmic() { all } else { own }
}

fn grid(svg: &mut Svg, scale: &Scale, unit: Unit, (top, bottom): (f64, f64)) {
    let mut free_from = f64::NEG_INFINITY;
    for tick in scale.ticks(6) {
        let x = scale.at(tick);
        svg.line("grid", (x, top), (x, bottom));
        let text = number::of_unit(tick, unit);
        let half = text_width(&text) / 2.0;
        if x - half > free_from {
            svg.text("tick", (x, bottom + 16.0), Anchor::Middle, &text);
            free_from = x + half + 6.0;
        }
    }
    if scale.is_logarithmic() {
        svg.text("tick", (WIDTH, bottom + 30.0), Anchor::End, "logarithmic scale");
    }
}

fn name(svg: &mut Svg, line: &Line, label: &str, (left, top): (f64, f64)) {
    let middle = top + height(line) / 2.0;
    svg.mark(&line.label(), |svg| {
        svg.text("label", (left - 12.0, middle + 4.0), Anchor::End, &shortened(label));
    });
}

fn row(svg: &mut Svg, line: &Line, scale: &Scale, top: f64, targets: &[String]) {
    let middle = top + height(line) / 2.0;
    let mut y = top + GAP / 2.0;
    for (target, cell) in line.cells.iter().enumerate() {
        let Some(cell) = cell else { continue };
        let tip = format!("{}, {}: {}", targets[target], line.label(), told(cell, line.unit));
        svg.mark(&tip, |svg| bar(svg, (target, cell), line.unit, scale, y));
        y += BAR + 3.0;
    }
    for figure in line.history.iter().filter(|figure| scale.covers(figure.value)) {
        let value = number::of_unit(figure.value, figure.unit);
        let tip = format!("original work: {value}, {} ({})", figure.system, figure.source);
        svg.mark(&tip, |svg| svg.history((scale.at(figure.value), middle)));
    }
}

fn bar(svg: &mut Svg, (target, cell): (usize, &Cell), unit: Unit, scale: &Scale, y: f64) {
    let (value, middle) = (cell.summary.mean, y + BAR / 2.0);
    let (start, end) = (scale.at(0.0), scale.at(value));
    let series = target % SERIES;
    if scale.is_logarithmic() {
        svg.line("lead", (start, middle), (end, middle));
    } else {
        svg.rectangle(&format!("bar fill s{series}"), (start, y), (end - start, BAR));
    }
    let mut right = end;
    if let Some(interval) = cell.interval {
        let (low, high) = (scale.at(interval.low.max(0.0)), scale.at(interval.high));
        let class = if scale.is_logarithmic() { "spread" } else { "spread on" };
        svg.line(class, (low, middle), (high, middle));
        for x in [low, high] {
            svg.line(class, (x, middle - 3.5), (x, middle + 3.5));
        }
        right = right.max(high);
    }
    if scale.is_logarithmic() {
        svg.sign(target, (end, middle));
    }
    let noisy = if cell.verdict.is_steady() { "" } else { " ~" };
    let text = format!("{}{noisy}", number::of_unit(value, unit));
    svg.text("value", (right + 7.0, middle + 4.0), Anchor::Start, &text);
}

/// A figure in words.
pub(super) fn told(cell: &Cell, unit: Unit) -> String {
    let mean = number::of_unit(cell.summary.mean, unit);
    let interval = cell.interval.map_or(String::new(), |interval| {
        let (low, high) = (interval.low, interval.high);
        format!(" (95 %: {} to {})", number::of_unit(low, unit), number::of_unit(high, unit))
    });
    let rounds = match cell.summary.count {
        1 => "1 round".to_owned(),
        count => format!("{count} rounds"),
    };
    format!("{mean}{interval}, {rounds}, {}", cell.verdict)
}

fn shortened(label: &str) -> String {
    let most = (LABEL_MAX / 7.3) as usize;
    if text_width(label) <= LABEL_MAX {
        return label.to_owned();
    }
    let kept: String = label.chars().take(most.saturating_sub(2)).collect();
    format!("{}...", kept.trim_end_matches([' ', ',']))
}

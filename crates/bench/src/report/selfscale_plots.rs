//! The self-scaling benchmark on the page: plateaus, families of graphs, and the quality of
//! predictions.

use super::chart::{Chart, Direction, Series, Spot, Style};
use super::page::Page;
use super::scale::Kind;
use super::svg::Svg;
use super::table::{Entry, Table};
use crate::number;
use crate::selfscale::{Axis, Curve, Exploration, Family, Model, Recorded, SelfCheck};

/// A description of the self-check.
const CHECKED: &str = "Random workloads were predicted from the graphs and measured as well. On \
    the line, both are the same.";

/// A target with its records.
struct PlottedTarget<'a> {
    number: usize,
    name: &'a str,
    recorded: &'a Recorded,
    exploration: &'a Exploration,
    model: Model,
    check: Option<SelfCheck>,
}

/// Adds all results of selfscale to the page.
pub(super) fn shapes(page: &mut Page, found: &[(String, Recorded)]) {
    let known: Vec<PlottedTarget<'_>> = found
        .iter()
        .enumerate()
        .filter_map(|(number, (name, it))| know(number, name, it))
        .collect();
    for (name, recorded) in found.iter().filter(|(_, recorded)| recorded.model().is_none()) {
        let count = recorded.graphs.len();
        let text = format!("{name}: the run ended while exploring, after {count} workloads.");
        page.paragraph("note", &text);
    }
    if known.is_empty() {
        return;
    }
    page.add(focal_table(&known).html());
    page.heading("Throughput over the working set");
    page.plots("selfscale", &[over_bytes(&known)]);
    page.add(plateau_table(&known).html());
    for one in &known {
        page.heading(&format!("Graphs of {}, one family a plateau", one.name));
        let axes = Axis::ALL.into_iter().filter(|axis| *axis != Axis::UniqueBytes);
        page.plots("selfscale", &axes.map(|axis| family(one, axis)).collect::<Vec<_>>());
    }
    checks(page, &known);
}

/// The findings, one sentence for each target.
pub(super) fn findings(found: &[(String, Recorded)]) -> Vec<String> {
    let known = found.iter().enumerate().filter_map(|(n, (name, it))| know(n, name, it));
    known.map(|one| sentence(&one)).collect()
}

fn sentence(one: &PlottedTarget<'_>) -> String {
    let families = one.model.families();
    let level = |family: &Family| {
        let plateau = family.plateau;
        let throughput = number::bytes_per_second(plateau.level);
        format!("{throughput} up to {}", number::bytes(plateau.high))
    };
    let levels: Vec<String> = families.iter().map(level).collect();
    let worth = match &one.check {
        None => "predictions were not checked".to_owned(),
        Some(check) if !check.is_trusted() => {
            format!("predictions miss by {}: see the warning", number::percent(check.error_median))
        }
        Some(check) => {
            format!("predictions miss by {} in the median", number::percent(check.error_median))
        }
    };
    let count = match families.len() {
        1 => "one plateau".to_owned(),
        more => format!("{more} plateaus"),
    };
    format!("selfscale: {} has {count} ({}); {worth}", one.name, levels.join(", "))
}

fn know<'a>(number: usize, name: &'a str, recorded: &'a Recorded) -> Option<PlottedTarget<'a>> {
    let model = recorded.model()?;
    let exploration = recorded.exploration.as_ref()?;
    let check = recorded.check(&model);
    Some(PlottedTarget { number, name, recorded, exploration, model, check })
}

/// A value on an axis.
fn value(axis: Axis) -> fn(f64) -> String {
    match axis {
        Axis::UniqueBytes | Axis::SizeMean => number::bytes,
        _ => number::plain,
    }
}

fn focal_table(known: &[PlottedTarget<'_>]) -> Table {
    let titles = Axis::ALL.map(|axis| axis.title().to_owned());
    let more = ["turns", "within 5 %"].map(str::to_owned);
    let heads = ["target".to_owned()].into_iter().chain(titles).chain(more).collect();
    let caption = "Focal vectors: where throughput reaches 75 % of its best over each parameter";
    let mut table = Table::new(caption, heads);
    for one in known {
        let focal = one.exploration.focal;
        let mut row = vec![Entry::words(one.name)];
        row.extend(
            Axis::ALL.map(|axis| Entry::number(value(axis)(focal.get(axis)), focal.get(axis))),
        );
        let turns = one.exploration.turns;
        let found = Entry::number(turns.to_string(), turns as f64);
        row.push(if one.exploration.is_settled { found } else { found.with("not settled") });
        row.push(settled(one.recorded));
        table.row(row);
    }
    table
}

/// Number of workloads that were measured to the wanted precision; the rest reached the cap.
fn settled(recorded: &Recorded) -> Entry {
    let all = || recorded.graphs.iter().chain(&recorded.checks);
    let steady = all().filter(|(_, measured)| measured.verdict().is_steady()).count();
    let count = all().count();
    let entry = Entry::number(format!("{steady} of {count}"), steady as f64);
    if steady == count { entry } else { entry.with(format!("{} at the cap", count - steady)) }
}

fn throughput() -> Direction {
    Direction {
        label: "throughput".to_owned(),
        kind: Kind::Fitting,
        format: number::bytes_per_second,
        ticks: None,
    }
}

fn over_bytes(known: &[PlottedTarget<'_>]) -> Svg {
    let curve = |one: &PlottedTarget<'_>| {
        let curve = one.model.families()[0].curve(Axis::UniqueBytes);
        series((one.name, one.number), curve)
    };
    let band = |family: &Family| {
        let plateau = family.plateau;
        let ends = (number::bytes(plateau.low), number::bytes(plateau.high));
        (plateau.low, plateau.high, format!("plateau from {} to {}", ends.0, ends.1))
    };
    let bands = match known {
        [only] => only.model.families().iter().map(band).collect(),
        _ => Vec::new(),
    };
    let chart = Chart {
        title: "Throughput over uniqueBytes".to_owned(),
        about: "Each target at its own focal vector; higher is better".to_owned(),
        size: (940.0, 320.0),
        x: Direction {
            label: Axis::UniqueBytes.title().to_owned(),
            kind: Kind::Logarithmic,
            format: number::bytes,
            ticks: Some(powers()),
        },
        y: throughput(),
        series: known.iter().map(curve).collect(),
        bands,
    };
    chart.draw()
}

/// Every second power of two, in bytes.
fn powers() -> Vec<f64> {
    (5..25).map(|power| 4_f64.powi(power)).collect()
}

fn series((name, number): (&str, usize), curve: &Curve) -> Series {
    let axis = curve.axis();
    let points = curve.points().iter().map(|(x, y)| {
        let (place, told) = (value(axis)(*x), number::bytes_per_second(*y));
        let tip = format!("{name}: {told} at {} {place}", axis.title());
        Spot { x: *x, y: *y, ends: None, tip }
    });
    Series { name: name.to_owned(), number, style: Style::Joined, points: points.collect() }
}

fn plateau_table(known: &[PlottedTarget<'_>]) -> Table {
    let heads = ["target", "plateau", "from", "to", "throughput", "form"].map(str::to_owned);
    let caption = "Plateaus: regions of about equal throughput over uniqueBytes";
    let mut table = Table::new(caption, heads.to_vec());
    for one in known {
        for (number, family) in one.model.families().iter().enumerate() {
            let plateau = family.plateau;
            let bytes = |value: f64| Entry::number(number::bytes(value), value);
            let form = if plateau.is_flat { "flat, within 15 %" } else { "a slope" };
            let level = number::bytes_per_second(plateau.level);
            table.row(vec![
                Entry::words(one.name),
                Entry::number((number + 1).to_string(), number as f64),
                bytes(plateau.low),
                bytes(plateau.high),
                Entry::number(level, plateau.level),
                Entry::words(form),
            ]);
        }
    }
    table
}

fn family(one: &PlottedTarget<'_>, axis: Axis) -> Svg {
    let curves = one.model.families().iter().enumerate().map(|(number, family)| {
        let name = format!("at {}", number::bytes(family.focal.get(Axis::UniqueBytes)));
        series((&name, number), family.curve(axis))
    });
    let (kind, ticks) = match axis {
        Axis::SizeMean => (Kind::Logarithmic, powers()),
        Axis::ProcessNum => (Kind::Logarithmic, (0..12).map(|power| 2_f64.powi(power)).collect()),
        _ => (Kind::Linear, vec![0.0, 0.25, 0.5, 0.75, 1.0]),
    };
    let chart = Chart {
        title: format!("{}: {}", one.name, axis.title()),
        about: format!("Throughput over {}, a curve for each plateau", axis.title()),
        size: (458.0, 250.0),
        x: Direction {
            label: axis.title().to_owned(),
            kind,
            format: value(axis),
            ticks: Some(ticks),
        },
        y: throughput(),
        series: curves.collect(),
        bands: Vec::new(),
    };
    chart.draw()
}

fn checks(page: &mut Page, known: &[PlottedTarget<'_>]) {
    let checked: Vec<(&PlottedTarget<'_>, &SelfCheck)> =
        known.iter().filter_map(|one| Some((one, one.check.as_ref()?))).collect();
    if checked.is_empty() {
        return;
    }
    page.heading("Accuracy of predictions");
    page.paragraph("note", CHECKED);
    for (one, check) in &checked {
        let warnings: Vec<String> =
            check.warnings.iter().map(|text| format!("{}: {text}", one.name)).collect();
        page.list("warning", &warnings);
    }
    page.plots("selfscale", &[scatter(&checked)]);
    page.add(check_table(&checked).html());
}

fn scatter(checked: &[(&PlottedTarget<'_>, &SelfCheck)]) -> Svg {
    let points = |(one, check): &(&PlottedTarget<'_>, &SelfCheck)| {
        let spot = |each: &crate::selfscale::Check| {
            let (x, y) = (each.measured.throughput(), each.prediction.throughput);
            let told = (number::bytes_per_second(y), number::bytes_per_second(x));
            let tip =
                format!("{}: predicted {}, measured {}; {}", one.name, told.0, told.1, each.at);
            Spot { x, y, ends: None, tip }
        };
        let points = check.checks.iter().map(spot).collect();
        Series { name: one.name.to_owned(), number: one.number, style: Style::Scattered, points }
    };
    let mut series: Vec<Series> = checked.iter().map(points).collect();
    let all: Vec<f64> =
        series.iter().flat_map(|s| s.points.iter().flat_map(|spot| [spot.x, spot.y])).collect();
    let ends = [
        all.iter().copied().fold(f64::INFINITY, f64::min),
        all.iter().copied().fold(0.0, f64::max),
    ];
    let same = ends.map(|x| Spot { x, y: x, ends: None, tip: String::new() }).to_vec();
    let guide = Series { name: "same".to_owned(), number: 0, style: Style::Guide, points: same };
    series.insert(0, guide);
    let direction = |label: &str| Direction {
        label: label.to_owned(),
        kind: Kind::Logarithmic,
        format: number::bytes_per_second,
        ticks: None,
    };
    let chart = Chart {
        title: "Predicted and measured throughput".to_owned(),
        about: "Random workloads; the nearer to the line, the better the prediction".to_owned(),
        size: (560.0, 420.0),
        x: direction("measured"),
        y: direction("predicted"),
        series,
        bands: Vec::new(),
    };
    chart.draw()
}

fn check_table(checked: &[(&PlottedTarget<'_>, &SelfCheck)]) -> Table {
    let heads =
        ["target", "workloads", "error, median", "error, 90th percentile", "on plateaus, median"];
    let caption = "Errors of predictions";
    let mut table = Table::new(caption, heads.map(str::to_owned).to_vec());
    for (one, check) in checked {
        let part = |value: f64| Entry::number(number::percent(value), value);
        table.row(vec![
            Entry::words(one.name),
            Entry::number(check.checks.len().to_string(), check.checks.len() as f64),
            part(check.error_median),
            part(check.error_p90),
            check.error_median_on_plateaus.map_or(Entry::words("-"), part),
        ]);
    }
    table
}

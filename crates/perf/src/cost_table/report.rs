use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::Bench;
use super::line::{Bar, Line, Spread};
use super::measure::{CONNECTIONS, DEPTH};

/// Prints how the table was measured, and the heads of its columns.
pub(super) fn heading(bench: &Bench) {
    let servers: Vec<_> = bench.targets.iter().map(|target| target.name).collect();
    println!(
        "{} in turn, {} rounds of {} s; {CONNECTIONS} connections, {DEPTH} calls outstanding on \
         each; server on one core, load on another.\nFigures are medians; us are of the server's \
         processor time a call. Ratios: median (least to greatest).\n",
        servers.join(", "),
        bench.rounds,
        bench.seconds,
    );
    println!(
        "{:<29}{:>10}{:>11}  {:<21}{:>7}{:>7}  {:<26}{:>9}{:>11}",
        "", "base", "comity", "ratio", "must", "best", "", "ganesha", "to ganesha"
    );
}

/// Prints a row.
pub(super) fn print(line: &Line) {
    let ganesha = Spread::of(&line.ganesha);
    println!(
        "{:<29}{:>10}{:>11}  {:<21}{:>7}{:>7}  {:<26}{:>9}{:>11}",
        line.name,
        figure(Spread::of(&line.base)),
        figure(Spread::of(&line.comity)),
        line.ratio().map_or_else(|| "-".to_owned(), ratio),
        line.must.map_or_else(|| "-".to_owned(), bar),
        line.best.map_or_else(|| "-".to_owned(), bar),
        judgement(line),
        figure(ganesha),
        line.to_ganesha().map_or_else(|| "-".to_owned(), |ratio| format!("{:.2}", ratio.median)),
    );
}

/// Prints how many rows reach their bounds, and returns whether all do.
pub(super) fn verdict(lines: &[Line]) -> bool {
    let missed: Vec<_> = lines.iter().filter(|line| line.is_met() == Some(false)).collect();
    let met = lines.iter().filter(|line| line.is_met() == Some(true)).count();
    let unknown = lines.iter().filter(|line| line.must.is_some() && line.is_met().is_none());
    println!("\n{met} rows reach what they must, {} miss it.", missed.len());
    for line in missed.iter() {
        println!("missed: {}", line.name);
    }
    unknown.for_each(|line| println!("not judged, without the peer: {}", line.name));
    missed.is_empty()
}

/// Writes all figures to a file.
pub(super) fn write_json(path: &Path, bench: &Bench, lines: &[Line]) -> Result<()> {
    #[derive(Serialize)]
    struct File<'a> {
        schema: u32,
        kernel: String,
        processor: String,
        rounds: usize,
        seconds: f64,
        lines: &'a [Line],
    }
    let file = File {
        schema: 1,
        kernel: kernel(),
        processor: processor(),
        rounds: bench.rounds,
        seconds: bench.seconds,
        lines,
    };
    let text = serde_json::to_string_pretty(&file)?;
    fs::write(path, text).with_context(|| path.display().to_string())
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    line.unwrap_or("unknown").trim_start_matches([' ', '\t', ':']).to_owned()
}

fn figure(spread: Option<Spread>) -> String {
    match spread.map(|spread| spread.median) {
        None => "-".to_owned(),
        Some(figure) if figure >= 100.0 => format!("{figure:.0}"),
        Some(figure) if figure >= 10.0 => format!("{figure:.1}"),
        Some(figure) => format!("{figure:.2}"),
    }
}

fn ratio(spread: Spread) -> String {
    format!("{:.2} ({:.2} to {:.2})", spread.median, spread.least, spread.greatest)
}

fn bar(bar: Bar) -> String {
    match bar {
        Bar::TimesBase(times) => format!("{times}"),
        Bar::AtLeastTimesBase(times) => format!(">{times}"),
        Bar::TimesGanesha(times) => format!("{times} g"),
        Bar::AtLeastTimesGanesha(times) => format!(">{times} g"),
        Bar::AtMost(figure) => format!("{figure}"),
    }
}

/// Formats whether the row reaches its bound, and the distance from the best.
fn judgement(line: &Line) -> String {
    let percent = |distance: f64| (distance - 1.0) * 100.0;
    let best = match line.best.and_then(|best| line.distance(best)) {
        None => String::new(),
        Some(distance) if distance <= 1.0 => ", best too".to_owned(),
        Some(distance) => format!(", best {:.0} % away", percent(distance)),
    };
    match line.must.map(|must| line.distance(must)) {
        None => String::new(),
        Some(None) => "not judged".to_owned(),
        Some(Some(distance)) if distance <= 1.0 => format!("met{best}"),
        Some(Some(distance)) => format!("MISSED by {:.0} %", percent(distance)),
    }
}

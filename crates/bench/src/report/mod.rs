//! The report of a result: plots as SVG, and one page that opens without a network.
//!
//! [`write()`] makes `report.html` and the folder `plots` beside `result.json`. The page loads no
//! font, no foreign script and no image. All of it is readable without a script; with its script,
//! tables can be sorted and marks show their values at once.

pub mod aggregate;
mod bars;
mod chart;
mod curves;
mod date;
mod distribution;
mod legend;
mod page;
pub(crate) mod plot;
mod scale;
mod section;
mod selfscale_plots;
mod summary;
mod svg;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;

use crate::selfscale::predict;
use crate::stdout::say;
use crate::suite::{Figure, RESULT_FILE, Store, SuiteOutcome, Workload, WorkloadRecord};
use aggregate::Line;
use page::Page;

pub use plot::{Compared, comparison};

/// The name of the page in a result's directory.
pub const PAGE_FILE: &str = "report.html";

/// The folder of the plots in a result's directory.
pub const PLOTS_FOLDER: &str = "plots";

/// Options of the report.
#[derive(Debug, Args)]
pub struct Options {
    /// The directory of a result.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Makes the report and prints its path.
///
/// # Errors
/// There is no result, or no space.
pub fn command(options: &Options, workloads: &[Arc<dyn Workload>]) -> Result<ExitCode> {
    let place = write(&options.directory, workloads)?;
    say(&format!("{}\n", place.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Makes the report of the result in a directory; returns the path of the page. `workloads` are the
/// known workloads, for their descriptions and published figures.
///
/// # Errors
/// There is no result, or no space.
pub fn write(directory: &Path, workloads: &[Arc<dyn Workload>]) -> Result<PathBuf> {
    let outcome = Store::read(directory)?;
    let directory = if directory.ends_with(RESULT_FILE) {
        directory.parent().unwrap_or(directory)
    } else {
        directory
    };
    let (html, plots) = page(&outcome, workloads)?.finish(&summary::title(&outcome));
    let folder = directory.join(PLOTS_FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    for plot in plots {
        let file = folder.join(&plot.file);
        fs::write(&file, plot.svg).with_context(|| format!("write {}", file.display()))?;
    }
    let place = directory.join(PAGE_FILE);
    fs::write(&place, html).with_context(|| format!("write {}", place.display()))?;
    Ok(place)
}

/// A workload of a result, with its description.
struct Chapter<'a> {
    record: &'a WorkloadRecord,
    known: Option<&'a Arc<dyn Workload>>,
    lines: Vec<Line>,
}

fn page(outcome: &SuiteOutcome, workloads: &[Arc<dyn Workload>]) -> Result<Page> {
    let chapters: Vec<Chapter<'_>> =
        outcome.workloads.iter().map(|record| chapter(outcome, record, workloads)).collect();
    let digested: Vec<summary::Digested<'_>> =
        chapters.iter().map(|each| (each.record.name.as_str(), each.lines.as_slice())).collect();
    let mut page = Page::default();
    let shapes = selfscale_plots::findings(&predict::recorded(outcome)?);
    summary::front(&mut page, outcome, &digested, shapes);
    for chapter in &chapters {
        tell(&mut page, outcome, chapter)?;
    }
    summary::environment(&mut page, outcome);
    Ok(page)
}

fn chapter<'a>(
    outcome: &SuiteOutcome,
    record: &'a WorkloadRecord,
    workloads: &'a [Arc<dyn Workload>],
) -> Chapter<'a> {
    let known = workloads.iter().find(|workload| workload.name() == record.name);
    let history: &[Figure] = known.map_or(&[], |workload| workload.history());
    // The hundreds of samples of selfscale are points of graphs, not single figures.
    let lines = match is_selfscale(record) {
        true => Vec::new(),
        false => aggregate::lines(outcome, record, history),
    };
    Chapter { record, known, lines }
}

fn is_selfscale(record: &WorkloadRecord) -> bool {
    record.name == "selfscale"
}

fn tell(page: &mut Page, outcome: &SuiteOutcome, chapter: &Chapter<'_>) -> Result<()> {
    let record = chapter.record;
    let targets: Vec<String> = outcome.targets.iter().map(|target| target.name.clone()).collect();
    page.section(&record.name, &record.name, |page| content(page, outcome, chapter, &targets))
}

fn content(
    page: &mut Page,
    outcome: &SuiteOutcome,
    chapter: &Chapter<'_>,
    targets: &[String],
) -> Result<()> {
    let record = chapter.record;
    if let Some(known) = chapter.known {
        page.paragraph("about", &sentence(known.about()));
        page.details("Where it comes from, and how it was run", |page| {
            page.paragraph("", known.origin());
            page.paragraph("flags", &record.parameters.to_string());
        });
    }
    if is_selfscale(record) {
        selfscale_plots::shapes(page, &predict::recorded(outcome)?);
    } else {
        section::figures(page, &record.name, &chapter.lines, targets);
        let found = distribution::distributions(outcome, record);
        section::latencies(page, &record.name, &found, targets);
    }
    section::calls(page, record, outcome);
    let notes = notes(outcome, record);
    if !notes.is_empty() {
        page.heading("Notes");
        page.list("notes", &notes);
    }
    Ok(())
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    format!("{}{}.", first.map_or(String::new(), String::from), letters.as_str())
}

/// Returns the notes of the rounds, without duplicates.
fn notes(outcome: &SuiteOutcome, record: &WorkloadRecord) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for round in &record.rounds {
        let target = outcome.targets.get(round.target).map_or("?", |target| &target.name);
        for note in &round.notes {
            let text = format!("{target}: {note}");
            if !out.contains(&text) {
                out.push(text);
            }
        }
    }
    out
}

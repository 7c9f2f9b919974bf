//! `comity placement label`.

use std::process::ExitCode;

use anyhow::Result;
use comity_server::control::Request;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cache_status::counted;
use crate::clients::text;
use crate::placement_arguments::PlacementArguments;
use crate::placement_pages::{each_page, items, meant_placements};
use crate::stdout::say;

/// The result of a walk so far.
#[derive(Default)]
struct Labelled {
    files: u64,
    labels: u64,
    /// The paths of the files that failed, with the reasons.
    failed: Vec<(String, String)>,
}

/// Writes the labels of the data files of placements.
///
/// # Errors
/// If no server can be asked, or the export has no data servers.
pub(crate) fn perform(typed: &PlacementArguments) -> Result<ExitCode> {
    let mut labelled = Labelled::default();
    let bar = ProgressBar::no_length().with_style(style());
    for placement in meant_placements(typed)? {
        let request = |directory, after| {
            let export = placement.export.clone();
            Request::PlacementLabels { export, directory, after }
        };
        each_page(&typed.state, request, |path, page| {
            labelled.add(&format!("{}{path}", placement.export.display()), page);
            bar.set_position(labelled.files);
            Ok(())
        })?;
    }
    bar.finish_and_clear();
    labelled.print(typed.json.json);
    Ok(if labelled.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Labelled {
    fn add(&mut self, directory: &str, page: &Value) {
        self.files += page["files"].as_u64().unwrap_or(0);
        self.labels += page["labels"].as_u64().unwrap_or(0);
        let failed = |file: &Value| {
            (format!("{directory}/{}", text(&file["name"])), text(&file["text"]).to_owned())
        };
        self.failed.extend(items(&page["failed"]).map(failed));
    }

    fn print(&self, json: bool) {
        let Self { files, labels, failed } = self;
        if json {
            let failed = |(path, why): &(String, String)| json!({ "path": path, "text": why });
            let failed: Vec<Value> = self.failed.iter().map(failed).collect();
            return say(json!({ "files": files, "labels": labels, "failed": failed }));
        }
        failed.iter().for_each(|(path, why)| say(format_args!("failed: {path}: {why}")));
        say(format_args!("{}: {} written", counted(*files, "file"), counted(*labels, "label")));
    }
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{spinner} {pos} files  {elapsed_precise}");
    style.unwrap_or_else(|_| ProgressStyle::default_spinner())
}

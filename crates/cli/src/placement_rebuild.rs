//! `comity placement rebuild`.

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use comity_server::control::Request;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cache_status::counted;
use crate::clients::text;
use crate::common_arguments::State;
use crate::control_client;
use crate::placement_arguments::RebuildArguments;
use crate::placement_pages::{ShownPlacement, items, meant_placements, placements};
use crate::stdout::say;

/// The result of a rebuild so far.
#[derive(Default)]
struct Rebuilding {
    /// The data files of files that have their places.
    kept: u64,
    /// The names of the data files whose files have got a place. All data files of one file have
    /// one name.
    changed: HashSet<String>,
    placed: Vec<String>,
    created: Vec<String>,
    left: Vec<LeftFile>,
    /// The data servers that could not be read, with the reasons.
    silent: Vec<(String, String)>,
}

/// A data file that was left as it is.
struct LeftFile {
    server: String,
    stored_name: String,
    why: String,
}

/// Rebuilds the places of files.
///
/// # Errors
/// If no server can be asked, or the export has no data servers.
pub(crate) fn perform(typed: &RebuildArguments) -> Result<ExitCode> {
    let mut rebuilding = Rebuilding::default();
    let bar = ProgressBar::no_length().with_style(style());
    for placement in meant_placements(&typed.placements)? {
        for (server, _) in &placement.servers {
            if let Err(why) = read(typed, (&placement, server), &mut rebuilding, &bar) {
                // The answer to this tells whether the server itself is gone.
                placements(&typed.placements.state)?;
                rebuilding.silent.push((server.clone(), format!("{why:#}")));
            }
        }
    }
    bar.finish_and_clear();
    rebuilding.print(typed);
    let is_whole = rebuilding.left.is_empty() && rebuilding.silent.is_empty();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the labels on a data server.
fn read(
    typed: &RebuildArguments,
    (placement, server): (&ShownPlacement, &str),
    rebuilding: &mut Rebuilding,
    bar: &ProgressBar,
) -> Result<()> {
    let state: &State = &typed.placements.state;
    let mut next = Some(0);
    while let Some(after) = next {
        let (export, server) = (placement.export.clone(), server.to_owned());
        let (from, dry_run) = (typed.from.clone(), typed.dry_run);
        let request = Request::PlacementRebuild { export, server, after, from, dry_run };
        let page = control_client::ask(state.clone(), &request)?;
        for file in items(&page["files"]) {
            rebuilding.add((&placement.export, &request), file);
            bar.inc(1);
        }
        next = page["next"].as_u64();
    }
    Ok(())
}

impl Rebuilding {
    fn add(&mut self, (export, request): (&Path, &Request), file: &Value) {
        let stored_name = text(&file["stored_name"]).to_owned();
        let path = format!("{}/{}", export.display(), text(&file["path"]));
        match text(&file["outcome"]) {
            outcome @ ("placed" | "created") => {
                let paths = if outcome == "placed" { &mut self.placed } else { &mut self.created };
                if self.changed.insert(stored_name) {
                    paths.push(path);
                }
            }
            "kept" => self.kept += 1,
            _ => {
                let Request::PlacementRebuild { server, .. } = request else { return };
                let (server, why) = (server.clone(), text(&file["text"]).to_owned());
                self.left.push(LeftFile { server, stored_name, why });
            }
        }
    }

    fn print(&self, typed: &RebuildArguments) {
        match typed.placements.json.json {
            true => say(self.json()),
            false => self.lines(typed.dry_run).iter().for_each(say),
        }
    }

    fn json(&self) -> Value {
        let left = |it: &LeftFile| {
            let (server, stored_name) = (&it.server, &it.stored_name);
            json!({ "server": server, "stored_name": stored_name, "text": it.why })
        };
        let silent = |(server, why): &(String, String)| json!({ "server": server, "text": why });
        json!({
            "placed": self.placed,
            "created": self.created,
            "kept_data_files": self.kept,
            "left": self.left.iter().map(left).collect::<Vec<_>>(),
            "unread": self.silent.iter().map(silent).collect::<Vec<_>>(),
        })
    }

    fn lines(&self, dry_run: bool) -> Vec<String> {
        let named = |what: &'static str, paths: &[String]| -> Vec<String> {
            paths.iter().map(|path| format!("{what}: {path}")).collect()
        };
        let mut lines = named("placed", &self.placed);
        lines.extend(named("created", &self.created));
        let left = |it: &LeftFile| format!("left: {} on {}: {}", it.stored_name, it.server, it.why);
        lines.extend(self.left.iter().map(left));
        lines.extend(self.silent.iter().map(|(server, why)| format!("unread: {server}: {why}")));
        let would = if dry_run { "would be " } else { "" };
        lines.push(format!(
            "{} {would}placed again, {} {would}created; {} left, {} in their places",
            counted(self.placed.len() as u64, "file"),
            self.created.len(),
            counted(self.left.len() as u64, "data file"),
            self.kept,
        ));
        lines
    }
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{spinner} {pos} data files  {elapsed_precise}");
    style.unwrap_or_else(|_| ProgressStyle::default_spinner())
}

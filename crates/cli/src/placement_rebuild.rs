//! `comity placement rebuild`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use comity_server::control::Request;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cache_status::counted;
use crate::clients::text;
use crate::common_arguments::StateFolderArguments;
use crate::control_client;
use crate::placement_arguments::RebuildArguments;
use crate::placement_pages::{items, meant_placements, placements};
use crate::stdout::say;

/// Most data files with a path in common: all are named in each request.
const SHARED_MAX: usize = 300;

/// The result of a rebuild so far.
#[derive(Default)]
struct Rebuilding {
    /// The data files of files that have their places.
    kept: u64,
    /// The paths of the files that have got a place, or would get one, with the names of their
    /// data files. All data files of one file have one name.
    claims: BTreeMap<String, BTreeSet<String>>,
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
    let mut rebuilding = walk(typed, &[], true)?;
    let shared = rebuilding.shared();
    if typed.dry_run {
        rebuilding.leave(&shared);
    } else if shared.len() > SHARED_MAX {
        bail!(
            "{} data files have a path in common with others: see --dry-run, and remove old ones",
            shared.len()
        );
    } else {
        rebuilding = walk(typed, &shared, false)?;
    }
    rebuilding.print(typed);
    let is_whole = rebuilding.left.is_empty() && rebuilding.silent.is_empty();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the labels on all data servers, and changes files unless `dry_run` says otherwise.
fn walk(typed: &RebuildArguments, except: &[String], dry_run: bool) -> Result<Rebuilding> {
    let mut rebuilding = Rebuilding::default();
    let bar = ProgressBar::no_length().with_style(style());
    for placement in meant_placements(&typed.placements)? {
        for (server, _) in &placement.servers {
            let request = |after| Request::PlacementRebuild {
                export: placement.export.clone(),
                server: server.clone(),
                after,
                from: typed.from.clone(),
                except: except.to_vec(),
                dry_run,
            };
            let of = (&*placement.export, server.as_str());
            if let Err(why) = read(&typed.placements.state, request, |file| {
                rebuilding.add(of, file);
                bar.inc(1);
            }) {
                // The answer to this tells whether the server itself is gone.
                placements(&typed.placements.state)?;
                rebuilding.silent.push((server.clone(), format!("{why:#}")));
            }
        }
    }
    bar.finish_and_clear();
    Ok(rebuilding)
}

/// Passes on the data files of a data server, page by page.
fn read(
    state: &StateFolderArguments,
    request: impl Fn(u64) -> Request,
    mut each: impl FnMut(&Value),
) -> Result<()> {
    let mut next = Some(0);
    while let Some(after) = next {
        let page = control_client::ask(state.clone(), &request(after))?;
        items(&page["files"]).for_each(&mut each);
        next = page["next"].as_u64();
    }
    Ok(())
}

impl Rebuilding {
    fn add(&mut self, (export, server): (&Path, &str), file: &Value) {
        let stored_name = text(&file["stored_name"]).to_owned();
        let path = format!("{}/{}", export.display(), text(&file["path"]));
        match text(&file["outcome"]) {
            outcome @ ("placed" | "created") => {
                let paths = if outcome == "placed" { &mut self.placed } else { &mut self.created };
                let claims = self.claims.entry(path.clone()).or_default();
                if claims.is_empty() {
                    paths.push(path);
                }
                claims.insert(stored_name);
            }
            "kept" => self.kept += 1,
            _ => {
                let (server, why) = (server.to_owned(), text(&file["text"]).to_owned());
                self.left.push(LeftFile { server, stored_name, why });
            }
        }
    }

    /// The names of data files that have a path in common with others. They stay as they are,
    /// because the older ones may be of a file that was replaced.
    fn shared(&self) -> Vec<String> {
        let shared = self.claims.values().filter(|names| names.len() > 1);
        shared.flatten().cloned().collect()
    }

    /// Counts these data files, which a trial has not left, as left.
    fn leave(&mut self, shared: &[String]) {
        let is_shared = |path: &String| self.claims.get(path).is_some_and(|it| it.len() > 1);
        self.placed.retain(|path| !is_shared(path));
        self.created.retain(|path| !is_shared(path));
        let left = |name: &String| LeftFile {
            server: "its data servers".to_owned(),
            stored_name: name.clone(),
            why: "other data files are of the same path, too".to_owned(),
        };
        self.left.extend(shared.iter().map(left));
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

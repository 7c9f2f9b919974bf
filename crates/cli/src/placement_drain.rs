//! `comity placement drain`.

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use comity_server::control::Request;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::cache_status::{bytes, counted};
use crate::common_arguments::StateFolderArguments;
use crate::control_client;
use crate::placement_arguments::DrainArguments;
use crate::placement_move::{FileMove, move_file, move_style};
use crate::placement_pages::{ShownPlacement, each_file, each_stored, items, placements};
use crate::stdout::say;

/// Time without any moved file after which the command gives up.
const PATIENCE: Duration = Duration::from_secs(300);

/// Pause before the files are walked again.
const WALK_PAUSE: Duration = Duration::from_secs(1);

/// The parts of a drain that stay the same.
struct Drain<'d> {
    state: &'d StateFolderArguments,
    name: &'d str,
    bar: ProgressBar,
}

/// The result of a drain so far.
#[derive(Default)]
struct Drained {
    files: u64,
    bytes: u64,
    /// The paths of moved files of which data servers lacked a part.
    gaps: Vec<String>,
    /// The files that were not moved in the last walk, with the reasons.
    left: Vec<(String, String)>,
    /// The data files that are still on the data server.
    data_files: u64,
}

/// Moves all files on a data server to others.
///
/// # Errors
/// If no server can be asked, or no placement has the data server marked as draining.
pub(crate) fn perform(typed: &DrainArguments) -> Result<ExitCode> {
    let (state, name) = (&typed.placements.state, typed.name.as_str());
    let meant = meant(typed, placements(state)?)?;
    let bar = ProgressBar::new(stored(state, &meant, name)?).with_style(move_style());
    let drain = Drain { state, name, bar };
    let mut drained = drain.all(&meant)?;
    let told = if drained.left.is_empty() { drain.tell_end(&meant) } else { Ok(()) };
    drained.data_files = stored(state, &meant, name)?;
    drain.bar.finish_and_clear();
    drained.print(typed);
    told?;
    Ok(if drained.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the placements whose data server of this name is to be drained.
fn meant(typed: &DrainArguments, all: Vec<ShownPlacement>) -> Result<Vec<ShownPlacement>> {
    let (name, export) = (&typed.name, typed.placements.export.as_deref());
    let mut meant = all;
    meant.retain(|it| export.is_none_or(|export| export == it.export));
    meant.retain(|it| it.servers.iter().any(|(known, _)| known == name));
    if meant.is_empty() {
        bail!("no data server {name} is known; `comity placement status` names all");
    }
    meant.retain(|it| it.draining.contains(name));
    if meant.is_empty() {
        bail!(
            "new files are still placed on {name}: set draining = true for it in [[placement]], \
             reload the server, and repeat this command"
        );
    }
    Ok(meant)
}

/// Counts the data files on the data server of each placement. An unreachable one is an error.
fn stored(state: &StateFolderArguments, meant: &[ShownPlacement], name: &str) -> Result<u64> {
    let mut seen: Vec<&str> = Vec::new();
    let mut count = 0;
    for placement in meant {
        let Some((_, address)) = placement.servers.iter().find(|(known, _)| known == name) else {
            continue;
        };
        if !seen.contains(&address.as_str()) {
            seen.push(address);
            each_stored(state, (&placement.export, name), |_| count += 1)?;
        }
    }
    Ok(count)
}

impl Drain<'_> {
    /// Walks the files until a walk finds none on the data server, or nothing moves any more. A
    /// file that is renamed during a walk may be missed by it.
    fn all(&self, meant: &[ShownPlacement]) -> Result<Drained> {
        let mut drained = Drained::default();
        let mut last = Instant::now();
        loop {
            let before = drained.files;
            drained.left.clear();
            for placement in meant {
                self.walk(&placement.export, &mut drained)?;
            }
            let has_moved = drained.files > before;
            if has_moved {
                last = Instant::now();
            }
            let is_done = drained.left.is_empty() && !has_moved;
            if is_done || last.elapsed() > PATIENCE {
                return Ok(drained);
            }
            if !drained.left.is_empty() {
                thread::sleep(WALK_PAUSE);
            }
        }
    }

    /// Tells the server that no file names the data server, so that a reload can take it out.
    fn tell_end(&self, meant: &[ShownPlacement]) -> Result<()> {
        for placement in meant {
            let (export, server) = (placement.export.clone(), self.name.to_owned());
            control_client::ask(self.state.clone(), &Request::PlacementDrained { export, server })?;
        }
        Ok(())
    }

    fn walk(&self, export: &Path, drained: &mut Drained) -> Result<()> {
        each_file(self.state, export, |path, file| {
            if items(&file["servers"]).any(|server| server == self.name) {
                self.move_file((export, path), file, drained)?;
            }
            Ok(())
        })
    }

    /// Moves a file. The reason why it was not moved is kept.
    fn move_file(
        &self,
        (export, path): (&Path, String),
        file: &Value,
        drained: &mut Drained,
    ) -> Result<()> {
        let path = format!("{}{path}", export.display());
        let copied = |count| self.bar.set_message(format!("{path}: {}", bytes(count)));
        match move_file(self.state, (export, file), copied)? {
            FileMove::Done(answer) => {
                drained.note(path, &answer);
                self.bar.inc(1);
            }
            FileMove::Left(why) => drained.left.push((path, why)),
        }
        Ok(())
    }
}

impl Drained {
    /// Notes a file that was moved, or that needs no move any more.
    fn note(&mut self, path: String, answer: &Value) {
        if answer["state"] == "moved" {
            self.files += 1;
            self.bytes += answer["bytes"].as_u64().unwrap_or(0);
            if answer["has_gaps"] == true {
                self.gaps.push(path);
            }
        }
    }

    fn print(&self, typed: &DrainArguments) {
        if typed.placements.json.json {
            let left = |(path, why): &(String, String)| json!({ "path": path, "text": why });
            return say(json!({
                "files": self.files,
                "bytes": self.bytes,
                "gaps": self.gaps,
                "left": self.left.iter().map(left).collect::<Vec<_>>(),
                "data_files": self.data_files,
                "is_drained": self.left.is_empty() && self.data_files == 0,
            }));
        }
        self.lines(&typed.name).iter().for_each(say);
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let gap = |path: &String| {
            format!("gap: {path}: a part was lost or never written; it has zeros there, as before")
        };
        let left = |(path, why): &(String, String)| format!("left: {path}: {why}");
        let mut lines: Vec<String> = self.gaps.iter().map(gap).collect();
        lines.extend(self.left.iter().map(left));
        lines.push(format!("{} moved, {}", counted(self.files, "file"), bytes(self.bytes)));
        lines.push(self.advice(name));
        lines
    }

    /// The next thing to do.
    fn advice(&self, name: &str) -> String {
        match (self.left.len() as u64, self.data_files) {
            (0, 0) => format!(
                "{name} is empty: take it out of the configuration and reload the metadata server"
            ),
            (0, count) => format!(
                "no file of these exports is on {name}, which still has {}: `comity placement \
                 check` names those that no file refers to; the others belong to other exports",
                counted(count, "data file")
            ),
            (left, _) => format!(
                "{} left on {name}: see above, and repeat this command",
                match left {
                    1 => "1 file is".to_owned(),
                    _ => format!("{left} files are"),
                }
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_drain_says_what_to_do_next() {
        let mut drained = Drained { files: 2, bytes: 4096, ..Drained::default() };
        let taken = "b is empty: take it out of the configuration and reload the metadata server";
        assert_eq!(drained.lines("b"), ["2 files moved, 4.0 KiB", taken]);
        drained.data_files = 1;
        assert!(drained.advice("b").contains("still has 1 data file: `comity placement check`"));
        drained.left.push(("/srv/f".to_owned(), "clients use the file".to_owned()));
        let lines = drained.lines("b");
        assert_eq!(lines[0], "left: /srv/f: clients use the file");
        assert_eq!(lines[2], "1 file is left on b: see above, and repeat this command");
    }

    #[test]
    fn a_data_server_that_takes_new_files_is_not_drained() {
        let typed = |name: &str| DrainArguments {
            name: name.to_owned(),
            placements: crate::placement_arguments::PlacementArguments {
                export: None,
                state: StateFolderArguments { state_dir: None },
                json: crate::common_arguments::Json { json: false },
            },
        };
        let all = || {
            let servers = ["a", "b"].map(|it| (it.to_owned(), format!("{it}:2049"))).to_vec();
            vec![ShownPlacement { export: "/srv".into(), servers, draining: vec!["b".to_owned()] }]
        };
        let why = |name| meant(&typed(name), all()).map(drop).unwrap_err().to_string();
        assert_eq!(meant(&typed("b"), all()).unwrap().len(), 1);
        assert!(why("a").contains("set draining = true"), "{}", why("a"));
        assert!(why("c").contains("no data server c is known"), "{}", why("c"));
    }
}

//! `comity placement resilver`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::cache_status::{bytes, counted};
use crate::common_arguments::StateFolderArguments;
use crate::placement_arguments::PlacementArguments;
use crate::placement_move::{FileMove, move_file, move_style};
use crate::placement_pages::{each_file, items, placements};
use crate::stdout::say;

/// The result of the command so far.
#[derive(Default)]
struct Resilvered {
    files: u64,
    bytes: u64,
    /// The files that still lack a mirror, with the reasons.
    left: Vec<(String, String)>,
}

/// Gives all files with a broken mirror whole mirrors again.
///
/// # Errors
/// If no server can be asked, or the export has no data servers.
pub(crate) fn perform(typed: &PlacementArguments) -> Result<ExitCode> {
    let mut meant = placements(&typed.state)?;
    meant.retain(|it| typed.export.as_deref().is_none_or(|export| export == it.export));
    if let (Some(export), true) = (&typed.export, meant.is_empty()) {
        let export = export.display();
        bail!("no export {export} has data servers; `comity placement status` names all");
    }
    let bar = ProgressBar::new(0).with_style(move_style());
    let mut done = Resilvered::default();
    for placement in &meant {
        done.walk(&typed.state, &placement.export, &bar)?;
    }
    bar.finish_and_clear();
    done.print(typed.json.json);
    Ok(if done.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Resilvered {
    fn walk(
        &mut self,
        state: &StateFolderArguments,
        export: &Path,
        bar: &ProgressBar,
    ) -> Result<()> {
        each_file(state, export, |path, file| {
            if items(&file["faults"]).all(|fault| fault["kind"] != "degraded") {
                return Ok(());
            }
            bar.inc_length(1);
            let path = format!("{}{path}", export.display());
            let copied = |count| bar.set_message(format!("{path}: {}", bytes(count)));
            match move_file(state, (export, file), copied)? {
                FileMove::Done(answer) => self.note(&answer),
                FileMove::Left(why) => self.left.push((path, why)),
            }
            bar.inc(1);
            Ok(())
        })
    }

    /// Notes a file that was copied, or that is gone.
    fn note(&mut self, answer: &Value) {
        if answer["state"] == "moved" {
            self.files += 1;
            self.bytes += answer["bytes"].as_u64().unwrap_or(0);
        }
    }

    fn print(&self, json: bool) {
        if json {
            let left = |(path, why): &(String, String)| json!({ "path": path, "text": why });
            let left: Vec<Value> = self.left.iter().map(left).collect();
            return say(json!({ "files": self.files, "bytes": self.bytes, "left": left }));
        }
        self.lines().iter().for_each(say);
    }

    fn lines(&self) -> Vec<String> {
        let left = |(path, why): &(String, String)| format!("left: {path}: {why}");
        let mut lines: Vec<String> = self.left.iter().map(left).collect();
        let (files, copied) = (counted(self.files, "file"), bytes(self.bytes));
        lines.push(format!("{files} mirrored again, {copied}"));
        if !self.left.is_empty() {
            let files = counted(self.left.len() as u64, "file");
            lines.push(format!("{files} left: see above, and repeat this command"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_left_are_named_with_the_reason() {
        let mut done = Resilvered::default();
        done.note(&json!({ "state": "moved", "bytes": 2048 }));
        done.note(&json!({ "state": "gone" }));
        assert_eq!(done.lines(), ["1 file mirrored again, 2.0 KiB"]);
        done.left.push(("/srv/f".to_owned(), "clients use the file".to_owned()));
        assert_eq!(
            done.lines(),
            [
                "left: /srv/f: clients use the file",
                "1 file mirrored again, 2.0 KiB",
                "1 file left: see above, and repeat this command",
            ]
        );
    }
}

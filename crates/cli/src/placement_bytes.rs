//! The comparison of the bytes of mirrors: `comity placement check --bytes`.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use comity_server::control::Request;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::cache_status::{bytes, counted};
use crate::clients::text;
use crate::common_arguments::StateFolderArguments;
use crate::control_client;
use crate::placement_pages::{handle, items, placements};

/// Most ranges of a file that are named.
const RANGES_MAX: usize = 100;

/// Files whose mirrors differed that are kept until they are looked at again.
const SUSPECTS_MAX: usize = 1000;

/// The number of further looks at a file whose mirrors differed, if clients write to it.
const ROUNDS: usize = 5;

/// Pause before files are looked at again: what a client writes to all mirrors arrives meanwhile.
const PAUSE: Duration = Duration::from_secs(1);

/// A check of the bytes of mirrors.
pub(crate) struct ByteCheck<'c> {
    state: &'c StateFolderArguments,
    bar: &'c ProgressBar,
    /// The files with two good mirrors or more.
    pub(crate) files: u64,
    /// The bytes of these files.
    pub(crate) bytes: u64,
    suspects: Vec<Suspect>,
    findings: Vec<Value>,
}

/// A file of an export.
#[derive(Clone)]
struct ComparedFile {
    export: PathBuf,
    path: String,
    fileid: Value,
    handle: Vec<u8>,
}

/// A file whose mirrors differed when they were read.
struct Suspect {
    file: ComparedFile,
    seen: SeenMirrors,
}

/// The result of a comparison of a file's mirrors.
#[derive(Default)]
struct SeenMirrors {
    ranges: Vec<MirrorRange>,
    /// Faults about mirrors that could not be read.
    unread: Vec<Value>,
    bytes: u64,
    /// The change attribute of the file.
    change: Option<u64>,
    /// True if clients may write to the file by layouts.
    is_written: bool,
    /// True if the file is being moved, so that nothing was compared.
    is_moving: bool,
    /// True if further ranges were not compared.
    is_cut: bool,
}

/// A range in which mirrors differ.
struct MirrorRange {
    offset: u64,
    length: u64,
    /// The data servers; those with the same bytes are together.
    groups: Value,
}

impl<'c> ByteCheck<'c> {
    pub(crate) const fn new(state: &'c StateFolderArguments, bar: &'c ProgressBar) -> Self {
        Self { state, bar, files: 0, bytes: 0, suspects: Vec::new(), findings: Vec::new() }
    }

    /// Compares the mirrors of a file, whose check was `file`; returns the faults of mirrors that
    /// cannot be read.
    ///
    /// # Errors
    /// If no server can be asked any more.
    pub(crate) fn add(&mut self, export: &Path, path: &str, file: &Value) -> Result<Vec<Value>> {
        let (export, path) = (export.to_owned(), path.to_owned());
        let (fileid, handle) = (file["fileid"].clone(), handle(&file["handle"]));
        let file = ComparedFile { export, path, fileid, handle };
        let Some(mut seen) = self.compare(&file, &[(0, None)])? else { return Ok(Vec::new()) };
        self.files += 1;
        self.bytes += seen.bytes;
        let unread = std::mem::take(&mut seen.unread);
        if seen.is_suspect() {
            self.suspects.push(Suspect { file, seen });
            if self.suspects.len() >= SUSPECTS_MAX {
                self.look_again()?;
            }
        }
        Ok(unread)
    }

    /// Returns the findings about files whose mirrors differ.
    ///
    /// # Errors
    /// If no server can be asked any more.
    pub(crate) fn end(&mut self) -> Result<Vec<Value>> {
        self.look_again()?;
        Ok(std::mem::take(&mut self.findings))
    }

    /// Compares again what differed, until nobody has changed the file between two comparisons.
    fn look_again(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            if self.suspects.is_empty() {
                return Ok(());
            }
            thread::sleep(PAUSE);
            for suspect in std::mem::take(&mut self.suspects) {
                self.look_at(suspect)?;
            }
        }
        let in_use = |it: Suspect| {
            let ranges = counted(it.seen.ranges.len() as u64, "range");
            let text = match it.seen.is_moving {
                true => "the file is being moved: repeat this".to_owned(),
                false => {
                    format!("mirrors differ in {ranges}, and clients use the file: repeat this")
                }
            };
            it.file.finding(&json!({ "kind": "unchecked", "text": text }))
        };
        self.findings.extend(std::mem::take(&mut self.suspects).into_iter().map(in_use));
        Ok(())
    }

    /// Compares the ranges of a file that differed.
    fn look_at(&mut self, Suspect { file, seen: before }: Suspect) -> Result<()> {
        let Some(mut seen) = self.compare(&file, &before.ranges_to_look_at())? else {
            return Ok(());
        };
        let mut faults = std::mem::take(&mut seen.unread);
        if seen.is_as(&before) {
            faults.extend(seen.faults());
        } else if seen.is_suspect() {
            self.suspects.push(Suspect { file: file.clone(), seen });
        }
        self.findings.extend(faults.iter().map(|fault| file.finding(fault)));
        Ok(())
    }

    /// Compares ranges of a file; returns `None` if it is gone or has no two good mirrors.
    fn compare(
        &self,
        file: &ComparedFile,
        ranges: &[(u64, Option<u64>)],
    ) -> Result<Option<SeenMirrors>> {
        let mut seen = SeenMirrors::default();
        for (begin, length) in ranges {
            let end = length.map(|length| begin + length);
            let mut next = Some(*begin);
            while let Some(offset) = next {
                let length = end.map(|end| end - offset);
                let (export, handle) = (file.export.clone(), file.handle.clone());
                let request = Request::PlacementBytes { export, file: handle, offset, length };
                let answer = match control_client::ask(self.state.clone(), &request) {
                    Ok(answer) => answer,
                    Err(why) => {
                        // The answer to this tells whether the server itself is gone.
                        placements(self.state)?;
                        seen.unread
                            .push(json!({ "kind": "unchecked", "text": format!("{why:#}") }));
                        return Ok(Some(seen));
                    }
                };
                if answer["state"] == "none" {
                    return Ok(None);
                }
                seen.add(&answer);
                self.bar.set_message(format!("{}: {}", file.path, bytes(seen.bytes)));
                next = answer["next"].as_u64().filter(|_| !seen.is_cut);
            }
        }
        Ok(Some(seen))
    }
}

impl SeenMirrors {
    /// Adds an answer about a part of the file.
    fn add(&mut self, answer: &Value) {
        self.is_written |= answer["is_written"] == true;
        self.is_moving |= answer["state"] == "moving";
        self.change = answer["change"].as_u64().or(self.change);
        self.bytes += answer["bytes"].as_u64().unwrap_or(0);
        for it in items(&answer["unread"]) {
            let fault = json!({ "kind": "unchecked", "server": it["server"], "text": it["text"] });
            if !self.unread.contains(&fault) {
                self.unread.push(fault);
            }
        }
        for it in items(&answer["differing"]) {
            let number = |name: &str| it[name].as_u64().unwrap_or(0);
            let (offset, length) = (number("offset"), number("length"));
            let groups = it["groups"].clone();
            self.add_range(MirrorRange { offset, length, groups });
        }
    }

    /// Adds a range, or extends the last one.
    fn add_range(&mut self, new: MirrorRange) {
        let is_full = self.ranges.len() >= RANGES_MAX;
        match self.ranges.last_mut() {
            Some(last) if last.offset + last.length == new.offset && last.groups == new.groups => {
                last.length += new.length;
            }
            _ if is_full => self.is_cut = true,
            _ => self.ranges.push(new),
        }
    }

    /// Returns whether the file must be looked at again.
    const fn is_suspect(&self) -> bool {
        self.is_moving || self.is_cut || !self.ranges.is_empty()
    }

    /// The ranges, with an offset and a length, that must be looked at again. If too many ranges
    /// differed, all that follows the last of them was not compared.
    fn ranges_to_look_at(&self) -> Vec<(u64, Option<u64>)> {
        if self.is_moving {
            return vec![(0, None)];
        }
        let mut ranges: Vec<_> =
            self.ranges.iter().map(|it| (it.offset, Some(it.length))).collect();
        if let (true, Some(last)) = (self.is_cut, self.ranges.last()) {
            ranges.push((last.offset + last.length, None));
        }
        ranges
    }

    /// Returns whether nobody has changed the file since another comparison.
    fn is_as(&self, before: &Self) -> bool {
        let all = [self, before];
        self.change == before.change && all.iter().all(|it| !it.is_written && !it.is_moving)
    }

    fn faults(&self) -> Vec<Value> {
        let mut faults: Vec<Value> = self.ranges.iter().map(MirrorRange::fault).collect();
        if self.is_cut {
            let text = "further bytes were not compared: too many ranges differ";
            faults.push(json!({ "kind": "unchecked", "text": text }));
        }
        faults
    }
}

impl MirrorRange {
    fn fault(&self) -> Value {
        let Self { offset, length, groups } = self;
        let group = |it: &Value| items(it).map(text).collect::<Vec<_>>().join(", ");
        let servers: Vec<String> = items(groups).map(group).collect();
        let (last, servers) = (offset + length - 1, servers.join(" and on "));
        let text = format!("bytes {offset} to {last} are not the same on {servers}");
        json!({
            "kind": "differing", "text": text,
            "offset": offset, "length": length, "groups": groups,
        })
    }
}

impl ComparedFile {
    fn finding(&self, fault: &Value) -> Value {
        let mut finding = finding((&self.export, &self.path), &self.fileid, fault);
        for name in ["offset", "length", "groups"] {
            if !fault[name].is_null() {
                finding[name] = fault[name].clone();
            }
        }
        finding
    }
}

/// A fault of a file as a finding.
pub(crate) fn finding((export, path): (&Path, &str), fileid: &Value, fault: &Value) -> Value {
    json!({
        "kind": fault["kind"],
        "export": export.display().to_string(),
        "path": path,
        "fileid": fileid,
        "server": fault["server"],
        "text": fault["text"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(change: u64, is_written: bool, differing: &[(u64, u64)]) -> Value {
        let range = |(offset, length): &(u64, u64)| {
            let groups = json!([["a"], ["b", "c"]]);
            json!({ "offset": offset, "length": length, "groups": groups })
        };
        let differing: Vec<Value> = differing.iter().map(range).collect();
        json!({ "change": change, "is_written": is_written, "differing": differing, "bytes": 9 })
    }

    fn seen(change: u64, is_written: bool, differing: &[(u64, u64)]) -> SeenMirrors {
        let mut seen = SeenMirrors::default();
        seen.add(&answer(change, is_written, differing));
        seen
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let mut it = seen(1, false, &[(0, 10), (10, 5)]);
        it.add(&answer(1, false, &[(15, 1), (20, 1)]));
        let texts: Vec<Value> = it.faults().iter().map(|fault| fault["text"].clone()).collect();
        assert_eq!(
            texts,
            [
                "bytes 0 to 15 are not the same on a and on b, c",
                "bytes 20 to 20 are not the same on a and on b, c",
            ]
        );
        assert_eq!(it.bytes, 18);
    }

    #[test]
    fn a_file_differs_if_nobody_has_written_between_two_looks() {
        let range = &[(0, 1)];
        assert!(seen(1, false, range).is_as(&seen(1, false, range)));
        assert!(!seen(2, false, range).is_as(&seen(1, false, range)), "it has changed");
        assert!(!seen(1, true, range).is_as(&seen(1, false, range)));
        assert!(!seen(1, false, range).is_as(&seen(1, true, range)));
        assert!(!seen(2, false, &[]).is_suspect(), "all is the same now");
        let mut moving = SeenMirrors::default();
        moving.add(&json!({ "state": "moving" }));
        assert!(moving.is_suspect() && !moving.is_as(&moving));
        assert_eq!(moving.ranges_to_look_at(), [(0, None)]);
    }

    #[test]
    fn a_file_with_too_many_ranges_is_not_compared_to_its_end() {
        let many: Vec<(u64, u64)> = (0..RANGES_MAX as u64 + 1).map(|at| (2 * at, 1)).collect();
        let it = seen(1, false, &many);
        assert!(it.is_cut);
        let again = it.ranges_to_look_at();
        assert_eq!(
            (again.len(), again[RANGES_MAX]),
            (RANGES_MAX + 1, (2 * RANGES_MAX as u64 - 1, None))
        );
        assert_eq!((it.ranges.len(), it.faults().len()), (RANGES_MAX, RANGES_MAX + 1));
    }
}

//! `comity cache fill`, `pin` and `drop`: the files are found through the mount, and the program
//! that serves it does the rest, a piece at each request.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::cache_arguments::CacheFiles;
use crate::cache_status::{bytes, counted, tell};
use crate::mount_client::FoundMount;
use crate::mount_request::{FileVerb, MountCaller, MountRequest};

/// The state of filling, pinning or dropping files.
struct FileWork {
    verb: FileVerb,
    mount: FoundMount,
    caller: MountCaller,
    bar: ProgressBar,
    count: FileCount,
}

/// The number of files and bytes handled so far, and of files that failed.
#[derive(Debug, Default)]
struct FileCount {
    files: u64,
    bytes: u64,
    failed: u64,
}

/// Fills, pins or drops files.
///
/// # Errors
/// If there is no mount, or it does not answer. A file that fails is reported, and the next ones
/// are still handled.
pub(crate) fn perform(typed: &CacheFiles, verb: FileVerb) -> Result<ExitCode> {
    let mut all = FileCount::default();
    for path in &typed.paths {
        // The mount is asked before the file is looked for, which would wait for it.
        let mount = FoundMount::of(path, &typed.state)?;
        let path = fs::canonicalize(path).map_err(|error| not_found(path, &error))?;
        // A mount without a cache is reported before any file is looked for.
        let state = mount.ask(&MountRequest::Status)?;
        if state["cache"].is_null() {
            return Err(anyhow!(
                "{}: this mount has no disk cache; mount it with -o dc_enable",
                mount.dir.display()
            ));
        }
        let bar = progress_bar(total(&path, verb));
        let (caller, count) = (MountCaller::of_process(), FileCount::default());
        let mut work = FileWork { verb, mount, caller, bar, count };
        walk(&path, &mut |file, size| work.file(file, size))?;
        work.bar.finish_and_clear();
        all.files += work.count.files;
        all.bytes += work.count.bytes;
        all.failed += work.count.failed;
    }
    let value = json!({ "files": all.files, "bytes": all.bytes, "failed_files": all.failed });
    let done = match verb {
        FileVerb::Fill => "cached as a whole",
        FileVerb::Pin => "pinned",
        FileVerb::Drop => "dropped",
    };
    let words = format!("{}, {}: {done}", counted(all.files, "file"), bytes(all.bytes));
    tell(typed.json.json, &value, &words);
    Ok(if all.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl FileWork {
    fn file(&mut self, file: &Path, size: u64) {
        let shown = file.strip_prefix(&self.mount.dir).unwrap_or(file);
        self.bar.set_message(shown.display().to_string());
        match self.steps(file) {
            Ok(freed) => {
                self.count.files += 1;
                self.count.bytes += freed.unwrap_or(size);
            }
            Err(error) => {
                self.count.failed += 1;
                self.bar.suspend(|| eprintln!("comity: {error:#}"));
            }
        }
        self.bar.inc(if self.verb == FileVerb::Drop { 1 } else { 0 });
    }

    /// Fills, pins or drops one file; returns the bytes that were freed by dropping it.
    fn steps(&self, file: &Path) -> Result<Option<u64>> {
        if self.verb == FileVerb::Drop {
            return Ok(self.ask(file, FileVerb::Drop)?["bytes"].as_u64());
        }
        let begun = self.bar.position();
        let size = fs::symlink_metadata(file).map_or(0, |attr| attr.len());
        while let Some(done) = self.fill_some(file)? {
            self.bar.set_position(begun + done.min(size));
        }
        self.bar.set_position(begun + size);
        // An empty file has no page that the cleaner could drop.
        if self.verb == FileVerb::Pin && size > 0 {
            self.ask(file, FileVerb::Pin)?;
        }
        Ok(None)
    }

    /// Fills a part of the file; returns the bytes that are cached now, or `None` if all are.
    fn fill_some(&self, file: &Path) -> Result<Option<u64>> {
        let answer = self.ask(file, FileVerb::Fill)?;
        Ok(answer["done_bytes"].as_u64().filter(|_| answer["complete"] == false))
    }

    fn ask(&self, file: &Path, verb: FileVerb) -> Result<Value> {
        let path = file.strip_prefix(&self.mount.dir).unwrap_or(file);
        let path = path.as_os_str().as_bytes().to_vec();
        self.mount.ask(&MountRequest::File { verb, path, caller: self.caller.clone() })
    }
}

/// The error for a path that cannot be found, with advice if the program of its mount has ended.
fn not_found(path: &Path, error: &io::Error) -> anyhow::Error {
    let shown = path.display();
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOTCONN) => anyhow!(
            "{shown}: the program of its mount has ended; unmount the directory (comity umount \
             DIR), and mount it again"
        ),
        _ => anyhow!("{shown}: {error}"),
    }
}

/// The length of the progress bar: bytes to be cached, or files to be dropped.
fn total(path: &Path, verb: FileVerb) -> (u64, FileVerb) {
    let mut sum = 0;
    let counted = walk(path, &mut |_, size| sum += if verb == FileVerb::Drop { 1 } else { size });
    (if counted.is_ok() { sum } else { 0 }, verb)
}

fn progress_bar((total, verb): (u64, FileVerb)) -> ProgressBar {
    let amounts = match verb {
        FileVerb::Drop => "{pos} of {len} files",
        _ => "{binary_bytes} of {binary_total_bytes}, {eta} left",
    };
    let template = format!("{{bar:20}} {{percent:>3}} %  {amounts}  {{wide_msg}}");
    let style = ProgressStyle::with_template(&template);
    // Draws nothing unless standard error is a terminal.
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Visits all regular files below a path, with their lengths. Files that are removed meanwhile are
/// left out.
fn walk(path: &Path, visit: &mut dyn FnMut(&Path, u64)) -> Result<()> {
    let mut waiting: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(attr) = fs::symlink_metadata(&path) else { continue };
        if attr.is_file() {
            visit(&path, attr.len());
        } else if attr.is_dir() {
            let entries = fs::read_dir(&path).with_context(|| path.display().to_string())?;
            waiting.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    Ok(())
}

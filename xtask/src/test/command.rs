//! Runs a program with its output in a log.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::verdict::Verdict;

/// Number of lines of a log that are printed when its program fails.
const LINES_SHOWN: usize = 80;

/// Makes a command that runs at the lowest priority.
pub(super) fn patient(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(program);
    command
}

/// The result of a program.
pub(super) struct Done {
    /// True if it ended with success and in time.
    pub(super) success: bool,
    /// The file with its output.
    pub(super) log: PathBuf,
}

/// Runs a program to its end, or kills it after `most`; its output goes to the log of `step`. It
/// runs in `root` unless the command has another folder.
///
/// # Errors
/// If it cannot be started.
pub(super) fn run(root: &Path, step: &str, mut command: Command, most: Duration) -> Result<Done> {
    let log = root.join("target/xtask").join(format!("{step}.log"));
    fs::create_dir_all(log.parent().unwrap_or(root))?;
    let out = File::create(&log)?;
    if command.get_current_dir().is_none() {
        command.current_dir(root);
    }
    command.stdin(Stdio::null());
    command.stdout(out.try_clone()?).stderr(out);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("run {program}"))?;
    let until = Instant::now() + most;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Done { success: status.success(), log });
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            println!("test: {step}: killed after {most:?}");
            return Ok(Done { success: false, log });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs a program that either passes or fails.
///
/// # Errors
/// If it cannot be started.
pub(super) fn judge(root: &Path, step: &str, command: Command, most: Duration) -> Result<Verdict> {
    let done = run(root, step, command, most)?;
    Ok(if done.success { Verdict::passed() } else { Verdict::failed(done.ending()) })
}

impl Done {
    /// The whole output of the program.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The path of the log, and its last lines.
    pub(super) fn ending(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n");
        format!("the end of {}:\n{shown}", self.log.display())
    }
}

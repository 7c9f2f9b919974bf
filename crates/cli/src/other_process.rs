//! Runs a command of this program in another process, which can be left behind.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Pause between two looks whether the process has ended.
const POLL: Duration = Duration::from_millis(5);

/// Runs a command of this program with these arguments; returns what it has printed, or `None` if
/// it has not ended in time. It must not print more than a pipe holds.
///
/// A process does not end, even if it is killed, while one of its threads waits for a file system
/// that does not answer. So a thread that is given up would keep this process from ending.
///
/// # Errors
/// The error of the command.
pub(crate) fn run_within<A: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = A>,
    patience: Duration,
) -> Result<Option<String>> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.arg0("comity").args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start this program again")?;
    if !ends_within(&mut child, patience)? {
        // It ends as soon as the file system lets it.
        let _ = child.kill();
        return Ok(None);
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        bail!("{}", said.strip_prefix("comity: ").unwrap_or(said));
    }
    Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
}

fn ends_within(child: &mut Child, patience: Duration) -> Result<bool> {
    let until = Instant::now() + patience;
    while child.try_wait()?.is_none() {
        if Instant::now() > until {
            return Ok(false);
        }
        thread::sleep(POLL);
    }
    Ok(true)
}

//! Shell commands, and the caches of this machine.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The file by which Linux is told to drop its caches.
pub(crate) const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Runs a shell command with additional variables in its environment.
///
/// # Errors
/// The command cannot be started, or fails; the message contains its output.
pub(crate) fn shell(command: &str, variables: &[(&str, &str)]) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).envs(variables.iter().copied()).stdin(Stdio::null());
    let said = shell.output().with_context(|| format!("run `{command}`"))?;
    let words = String::from_utf8_lossy(&said.stderr);
    let words = if words.trim().is_empty() { "it said nothing" } else { words.trim() };
    ensure!(said.status.success(), "`{command}` failed ({}): {words}", said.status);
    Ok(())
}

/// Writes back and drops this machine's caches.
///
/// # Errors
/// The user is not root, or a container forbids it.
pub(crate) fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    let file = OpenOptions::new().write(true).open(DROP_CACHES);
    let written = file.and_then(|mut file| file.write_all(b"3"));
    written.with_context(|| format!("cannot write {DROP_CACHES}: dropping caches takes root"))
}

use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Reset;
use crate::agent;

/// Where Linux is told to drop its caches.
pub(crate) const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// The ways to empty caches that the command line gives; all of them are used, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resets {
    /// Shell commands, as one that unmounts and mounts again.
    pub commands: Vec<String>,
    /// Servers on which `comity bench agent` runs.
    pub agents: Vec<SocketAddr>,
    /// Whether this machine's page, name and inode caches are dropped, which takes root.
    pub drop_caches: bool,
}

impl Reset for Resets {
    fn reset(&self) -> Result<bool> {
        let run = |command: &String| shell(command, &[]).context("--reset");
        self.commands.iter().try_for_each(run)?;
        self.agents.iter().try_for_each(|agent| agent::flush(*agent))?;
        if self.drop_caches {
            drop_caches()?;
        }
        Ok(self.drop_caches || !self.commands.is_empty() || !self.agents.is_empty())
    }

    fn about(&self) -> String {
        let commands = self.commands.iter().map(|command| format!("`{command}`"));
        let agents = self.agents.iter().map(|agent| format!("agent {agent}"));
        let own = self.drop_caches.then(|| "drop_caches".to_owned());
        let ways: Vec<String> = commands.chain(agents).chain(own).collect();
        if ways.is_empty() { "not at all".into() } else { ways.join(", ") }
    }
}

/// Runs a command of the user's with more variables in its environment.
///
/// # Errors
/// It cannot be started, or fails; what it said is in the message.
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
/// Not root, or in a container that may not.
pub(crate) fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    let file = OpenOptions::new().write(true).open(DROP_CACHES);
    let written = file.and_then(|mut file| file.write_all(b"3"));
    written.with_context(|| format!("cannot write {DROP_CACHES}: dropping caches takes root"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_given_is_nothing_done() {
        let resets = Resets::default();
        assert!(!resets.reset().unwrap());
        assert_eq!(resets.about(), "not at all");
    }

    #[test]
    fn commands_are_run_and_their_failure_is_told() {
        let mut resets = Resets { commands: vec!["true".into()], ..Resets::default() };
        assert!(resets.reset().unwrap());
        resets.commands.push("echo broken >&2; exit 3".into());
        let error = format!("{:#}", resets.reset().unwrap_err());
        assert!(error.contains("exit status: 3") && error.ends_with("broken"), "{error}");
        resets.commands = vec!["exit 4".into()];
        let error = format!("{:#}", resets.reset().unwrap_err());
        assert_eq!(error, "--reset: `exit 4` failed (exit status: 4): it said nothing");
    }
}

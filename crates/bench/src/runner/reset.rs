use std::net::SocketAddr;

use anyhow::{Context, Result};

use crate::agent;
use crate::suite::Reset;
use crate::system::{drop_caches, shell};

/// The ways to empty caches that the command line gives; all of them are used, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resets {
    /// Shell commands, such as one that unmounts and mounts again.
    pub commands: Vec<String>,
    /// Servers on which `comity bench agent` runs.
    pub agents: Vec<SocketAddr>,
    /// True to drop the page, name and inode caches of this machine, which takes root.
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

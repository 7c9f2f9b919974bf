//! Replays a trace through mounts: what its clients did is done again, at the same times.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::event::{Action, Actor, Event};

/// The target of the symbolic links that stand for the names of a trace.
const TARGET: &str = "nothing";

/// The outcome of a replay.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// The events with the times at which they were done. A busy machine is late; the calls that a
    /// simulator predicts for these times are those of the replay all the same.
    pub performed: Vec<Event>,
    /// Look-ups whose outcome was not that of the trace.
    pub other_outcomes: u64,
}

/// Makes the directories of a trace, and the names that are there when it begins. Names are
/// symbolic links: making one is a single call.
///
/// # Errors
/// If the file system fails.
pub fn lay_out(events: &[Event], root: &Path) -> Result<()> {
    let mut met = BTreeSet::new();
    for event in events {
        for (directory, name, is_there) in event.before() {
            let directory = place(root, directory);
            fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
            let Some(path) = name.map(|name| directory.join(name)) else { continue };
            if met.insert(path.clone()) && is_there {
                make(&path).with_context(|| path.display().to_string())?;
            }
        }
    }
    Ok(())
}

/// Replays a trace: each client in its mount, and programs on the server in `root`. No event is
/// done earlier than in the trace.
///
/// # Errors
/// A client has no mount, or an action fails.
pub fn replay(events: &[Event], mounts: &BTreeMap<u32, PathBuf>, root: &Path) -> Result<Replayed> {
    let begun = Instant::now();
    let mut replayed = Replayed::default();
    for event in events {
        let due = begun + Duration::from_micros(event.at_microseconds);
        sleep(due.saturating_duration_since(Instant::now()));
        let at_microseconds = begun.elapsed().as_micros() as u64;
        replayed.performed.push(Event { at_microseconds, ..event.clone() });
        let root = match event.actor {
            Actor::Client(client) => mounts.get(&client).context("a client without a mount")?,
            Actor::Local => root,
        };
        let is_same = perform(&event.action, root).with_context(|| format!("{event:?}"))?;
        replayed.other_outcomes += u64::from(!is_same);
    }
    Ok(replayed)
}

/// Returns whether the outcome is that of the trace.
fn perform(action: &Action, root: &Path) -> Result<bool> {
    match action {
        Action::Lookup { directory, name, found } => {
            let is_there = match fs::symlink_metadata(place(root, directory).join(name)) {
                Ok(_) => true,
                Err(error) if error.kind() == ErrorKind::NotFound => false,
                Err(error) => return Err(error.into()),
            };
            return Ok(is_there == *found);
        }
        Action::List(directory) => {
            for entry in fs::read_dir(place(root, directory))? {
                entry?;
            }
        }
        Action::Stat(directory) => {
            fs::metadata(place(root, directory))?;
        }
        Action::Create { directory, name } => make(&place(root, directory).join(name))?,
        Action::Remove { directory, name } => {
            fs::remove_file(place(root, directory).join(name))?;
        }
        Action::Rename { from, to } => {
            let [from, to] = [from, to].map(|(dir, name)| place(root, dir).join(name));
            fs::rename(from, to)?;
        }
    }
    Ok(true)
}

fn make(path: &Path) -> Result<()> {
    Ok(std::os::unix::fs::symlink(TARGET, path)?)
}

/// The place of a directory of a trace below a root.
fn place(root: &Path, directory: &str) -> PathBuf {
    root.join(directory.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::super::Pattern;
    use super::*;

    #[test]
    fn each_pattern_can_be_replayed_and_has_the_outcomes_of_its_trace() {
        for pattern in Pattern::value_variants() {
            let folder = tempfile::tempdir().unwrap();
            let mut events = pattern.trace(1, 2, 1);
            events.iter_mut().for_each(|event| event.at_microseconds = 0);
            lay_out(&events, folder.path()).unwrap();
            let mounts = (1..=2).map(|client| (client, folder.path().to_owned())).collect();
            let replayed = replay(&events, &mounts, folder.path()).unwrap();
            assert_eq!(replayed.other_outcomes, 0, "{pattern:?}");
        }
    }
}

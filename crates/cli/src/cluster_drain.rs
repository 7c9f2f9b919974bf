//! `comity cluster drain` and `comity cluster undrain`.

mod drain_progress;

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use comity_server::control::Request;
use serde_json::json;

use self::drain_progress::{DrainEnd, DrainProgress};
use crate::cluster_arguments::{ClusterDrain, ClusterUndrain};
use crate::control_client;
use crate::stdout::say;

/// Time between two questions for the state of the cluster.
const PAUSE: Duration = Duration::from_millis(200);

/// Marks a head as drained, and waits until its exports have moved.
///
/// # Errors
/// If no head can be asked, or the head cannot be drained.
pub(crate) fn drain(typed: &ClusterDrain) -> Result<ExitCode> {
    let head = typed.head.clone();
    control_client::ask(typed.state.clone(), &Request::ClusterDrain { head })?;
    if typed.no_wait {
        return Ok(tell_marked(typed));
    }
    let mut progress = DrainProgress::new(&typed.head);
    let end = follow(typed, &mut progress)?;
    let (is_good, text) = (end.is_good(), progress.told(end));
    match (typed.json.json, is_good) {
        (true, _) => say(progress.json(end)),
        (false, true) => say(text),
        (false, false) => eprintln!("comity: {text}"),
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows the moves until the last one, or until no export has moved for too long.
fn follow(typed: &ClusterDrain, progress: &mut DrainProgress) -> Result<DrainEnd> {
    let patience = Duration::from_secs(typed.wait_seconds);
    let mut last = Instant::now();
    loop {
        let answer = control_client::ask(typed.state.clone(), &Request::Cluster)?;
        let moved = progress.moved();
        let (lines, end) = progress.note(&answer);
        if !typed.json.json {
            lines.iter().for_each(say);
        }
        if progress.moved() > moved {
            last = Instant::now();
        }
        match end {
            Some(end) => return Ok(end),
            None if last.elapsed() > patience => return Ok(DrainEnd::Staying),
            None => thread::sleep(PAUSE),
        }
    }
}

fn tell_marked(typed: &ClusterDrain) -> ExitCode {
    match typed.json.json {
        true => say(json!({ "head": typed.head, "state": "marked" })),
        false => say(format_args!(
            "{} takes no more exports, and moves those that it has: `comity cluster status` shows \
             which are left",
            typed.head
        )),
    }
    ExitCode::SUCCESS
}

/// Takes the mark of a drained head away.
///
/// # Errors
/// If no head can be asked, or the head is not drained.
pub(crate) fn undrain(typed: ClusterUndrain) -> Result<ExitCode> {
    let ClusterUndrain { head, state, json } = typed;
    control_client::ask(state, &Request::ClusterUndrain { head: head.clone() })?;
    match json.json {
        true => say(json!({ "head": head, "state": "undrained" })),
        false => say(format_args!(
            "{head} takes exports again; those that have moved stay where they are"
        )),
    }
    Ok(ExitCode::SUCCESS)
}

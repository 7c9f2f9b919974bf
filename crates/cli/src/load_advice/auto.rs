//! `comity load advise --auto`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use comity_load::{AutoBounds, AutoMoves, PossibleMove};
use comity_server::control::Request;
use serde_json::{Value, json};

use super::advice;
use crate::clients::text;
use crate::control_client::{ask, follow, run_number};
use crate::load_arguments::AdviseArguments;
use crate::placement_pages::items;
use crate::stdout::say;

/// Time between two looks: loads are averages over a minute.
const LOOK: Duration = Duration::from_secs(60);

/// The looks, one after the other, at which a move has to pay.
const LOOKS: u32 = 5;

/// A move of the exports at these paths.
type ExportMove = PossibleMove<Vec<PathBuf>>;

/// Looks at the moves once a minute, and makes those that pay, until the process is ended.
///
/// # Errors
/// If no server can be asked at the first look, or clients of NFSv3 would lose their mounts.
pub(super) fn run(typed: &AdviseArguments) -> Result<ExitCode> {
    let (mut moves, begun) = (AutoMoves::new(bounds(typed)), Instant::now());
    let mut looked = advice(typed)?;
    ensure!(
        typed.proxy_for.is_some() || looked["serves_three"] != true,
        "the server serves NFSv3, whose clients lose their mounts by a move: give --proxy-for \
         SECONDS, or serve NFSv4 only"
    );
    loop {
        let possible: Vec<ExportMove> = items(&looked["moves"]).map(possible).collect();
        if let Some(best) = moves.look(begun.elapsed(), &possible)
            && !make(typed, best)
        {
            moves.note_failure(begun.elapsed(), best);
        }
        thread::sleep(LOOK);
        // The server may be restarting: then no move was within the bounds at this look.
        looked = advice(typed).unwrap_or_else(|why| {
            eprintln!("comity: warning: no look this time: {why:#}");
            Value::Null
        });
    }
}

fn bounds(typed: &AdviseArguments) -> AutoBounds {
    AutoBounds {
        gain_least: f64::from(typed.least_gain) / 100.0,
        rest: Duration::from_secs(60) * typed.rest,
        looks: LOOKS,
        hourly_most: typed.hourly as usize,
    }
}

/// Reads a move of an answer. One that the server warns of is left to an administrator.
fn possible(one: &Value) -> ExportMove {
    let is_empty = |name: &str| items(&one[name]).next().is_none();
    PossibleMove {
        unit: items(&one["exports"]).map(|path| text(path).into()).collect(),
        to: text(&one["to"]).to_owned(),
        gain: one["gain"].as_f64().unwrap_or_default(),
        gain_all: one["gain_all"].as_f64().unwrap_or_default(),
        is_sure: one["pays"] == true && is_empty("doubts") && is_empty("warnings"),
        served: Duration::from_secs(one["served_seconds"].as_u64().unwrap_or_default()),
    }
}

/// Makes a move if the peer would take the exports, and tells how it ended. Returns whether it was
/// made.
fn make(typed: &AdviseArguments, one: &ExportMove) -> bool {
    let try_out = request(typed, one, true).and_then(|request| ask(typed.state.clone(), &request));
    let moved = try_out.and_then(|_| {
        let request = request(typed, one, false)?;
        follow(&typed.state, &request, "moving", |_| {})
    });
    let failed = moved.err().map(|why| format!("{why:#}"));
    let exports: Vec<String> = one.unit.iter().map(|path| path.display().to_string()).collect();
    let (to, gain, is_made) = (&one.to, one.gain, failed.is_none());
    if typed.json.json {
        say(json!({ "exports": exports, "to": to, "gain": gain, "failed": failed }));
        return is_made;
    }
    let (exports, percent) = (exports.join(" "), gain * 100.0);
    match failed {
        None => say(format_args!("{exports}: moved to {to}; gain {percent:.0} %")),
        Some(why) => eprintln!(
            "comity: warning: {exports}: the move to {to} failed: {why}; `comity status` shows \
             where they are"
        ),
    }
    is_made
}

fn request(typed: &AdviseArguments, one: &ExportMove, dry_run: bool) -> Result<Request> {
    let (exports, to) = (one.unit.clone(), one.to.clone());
    let (forward_seconds, run) = (typed.proxy_for, run_number()?);
    Ok(Request::Migrate { exports, to, forward_seconds, dry_run, run })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Value {
        json!({
            "exports": ["/srv/a"], "to": "b", "gain": 0.5, "gain_all": 0.25, "pays": true,
            "served_seconds": 90, "doubts": [], "warnings": [],
        })
    }

    #[test]
    fn a_move_with_a_doubt_or_a_warning_is_not_sure() {
        let mut one = answer();
        let sure = possible(&one);
        let served = Duration::from_secs(90);
        let (unit, to) = (vec![PathBuf::from("/srv/a")], "b".to_owned());
        let expected = PossibleMove { unit, to, gain: 0.5, gain_all: 0.25, is_sure: true, served };
        assert_eq!(sure, expected);
        for name in ["doubts", "warnings"] {
            one[name] = json!(["something"]);
            assert!(!possible(&one).is_sure, "{name}");
            one[name] = json!([]);
        }
        one["pays"] = json!(false);
        assert!(!possible(&one).is_sure);
    }
}

//! `comity cluster move`.

use std::process::ExitCode;

use anyhow::Result;
use comity_server::control::Request;
use indicatif::ProgressBar;
use serde_json::Value;

use crate::clients::text;
use crate::cluster_arguments::ClusterMove;
use crate::control_client;
use crate::migrate::moved;
use crate::stdout::say;

/// Moves an export to another head, or asks whether that is possible.
///
/// # Errors
/// If no head can be asked, or the export was not moved.
pub(crate) fn perform(typed: &ClusterMove) -> Result<ExitCode> {
    let ClusterMove { export, to, dry_run, .. } = typed.clone();
    let request = Request::ClusterMove { export, to, dry_run, run: control_client::run_number()? };
    let bar = ProgressBar::new_spinner();
    let answer = control_client::follow(&typed.state, &request, "moving", |answer| {
        bar.set_message(text(&answer["step"]).to_owned());
        bar.tick();
    })?;
    bar.finish_and_clear();
    match typed.json.json {
        true => say(&answer),
        false => lines(&typed.to, &answer).iter().for_each(say),
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(to: &str, answer: &Value) -> Vec<String> {
    let exports = answer["exports"].as_array().into_iter().flatten();
    let exports: Vec<&str> = exports.map(text).collect();
    let together = match exports.len() {
        0 | 1 => None,
        _ => Some(format!("these have one address, and move together: {}", exports.join(", "))),
    };
    let outcome = match text(&answer["state"]) {
        "possible" => format!("{to} can take the export; without --dry-run it is moved"),
        _ => moved(to, answer),
    };
    together.into_iter().chain([outcome]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn exports_that_move_together_are_named() {
        let answer = json!({
            "state": "moved", "exports": ["/srv/x", "/srv/y"], "clients": 1, "states": 3,
            "state_bytes": 2048, "frozen_milliseconds": 7,
        });
        let expected = [
            "these have one address, and move together: /srv/x, /srv/y",
            "moved to b with 1 client, 3 stateids and 2.0 KiB of state; clients waited for 7 ms",
        ];
        assert_eq!(lines("b", &answer), expected);
        let possible = json!({ "state": "possible", "exports": ["/srv/x"] });
        assert_eq!(lines("b", &possible), ["b can take the export; without --dry-run it is moved"]);
    }
}

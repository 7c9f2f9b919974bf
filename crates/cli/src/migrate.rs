//! `comity migrate`.

use std::process::ExitCode;

use anyhow::Result;
use comity_server::control::Request;
use indicatif::ProgressBar;
use serde_json::Value;

use crate::cache_status::{bytes, counted};
use crate::clients::text;
use crate::control_client;
use crate::migrate_arguments::MigrateArguments;
use crate::stdout::say;

/// Moves exports to another server, or asks whether that is possible.
///
/// # Errors
/// If no server can be asked, or the exports were not moved.
pub(crate) fn perform(typed: &MigrateArguments) -> Result<ExitCode> {
    if typed.cancel {
        return cancel(typed);
    }
    let MigrateArguments { exports, to, proxy_for: forward_seconds, dry_run, .. } = typed.clone();
    let (to, run) = (to.unwrap_or_default(), control_client::run_number()?);
    let request = Request::Migrate { exports, to, forward_seconds, dry_run, run };
    let bar = ProgressBar::new_spinner();
    let mut is_warned = typed.json.json;
    let answer = control_client::follow(&typed.state, &request, "moving", |answer| {
        if !std::mem::replace(&mut is_warned, true) {
            warn(answer);
        }
        bar.set_message(text(&answer["step"]).to_owned());
        bar.tick();
    })?;
    bar.finish_and_clear();
    match typed.json.json {
        true => say(&answer),
        false => say(line(typed, &answer)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Cancels the move that is under way.
fn cancel(typed: &MigrateArguments) -> Result<ExitCode> {
    let answer = control_client::ask(typed.state.clone(), &Request::CancelMigration)?;
    match typed.json.json {
        true => say(&answer),
        false => say("cancelled: the exports stay here"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what the server warns of.
fn warn(answer: &Value) {
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    warnings.for_each(|warning| eprintln!("comity: warning: {}", text(warning)));
}

fn line(typed: &MigrateArguments, answer: &Value) -> String {
    let to = typed.to.as_deref().unwrap_or_default();
    if text(&answer["state"]) == "possible" {
        return format!("{to} can take these exports; without --dry-run they are moved");
    }
    moved(to, answer)
}

/// Tells what was moved, and how long clients waited.
pub(crate) fn moved(to: &str, answer: &Value) -> String {
    let number = |name: &str| answer[name].as_u64().unwrap_or(0);
    format!(
        "moved to {to} with {}, {} and {} of state; clients waited for {} ms",
        counted(number("clients"), "client"),
        counted(number("states"), "stateid"),
        bytes(number("state_bytes")),
        number("frozen_milliseconds"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::json;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        migrate: MigrateArguments,
    }

    #[test]
    fn the_end_of_a_migration_is_shown_with_its_figures() {
        let Typed { migrate } = Typed::parse_from(["migrate", "/srv/a", "--to", "b"]);
        let answer = json!({
            "state": "moved", "clients": 1, "states": 3, "state_bytes": 2048,
            "frozen_milliseconds": 7,
        });
        let expected = "moved to b with 1 client, 3 stateids and 2.0 KiB of \
                        state; clients waited for 7 ms";
        assert_eq!(line(&migrate, &answer), expected);
        assert!(line(&migrate, &json!({ "state": "possible" })).contains("--dry-run"));
    }
}

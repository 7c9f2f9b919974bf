//! Explains why a call is granted or refused, by the decisions of the server itself: `comity
//! explain`.

use std::process::ExitCode;

use anyhow::Result;
use comity_daemon::{Configuration, explanation_json};
use comity_export::Source;
use comity_server::control::Request;
use serde_json::Value;

use crate::stdout::say;
use crate::{check, control_client, explain_arguments, settings};

/// Explains a call by a configuration, or by the one that a running server has in force.
///
/// # Errors
/// If no server can be asked. A refused configuration is shown by the exit code.
pub(crate) fn show(typed: explain_arguments::Explain) -> Result<ExitCode> {
    let sources = settings::files(&typed.source);
    let live = typed.live || sources.is_empty();
    let json = typed.json.json;
    let state = typed.state.clone();
    let request = request(typed);
    let answer = match live {
        true => control_client::ask(state, &request)?,
        false => match by_configuration(sources, &request)? {
            Ok(answer) => answer,
            Err(code) => return Ok(code),
        },
    };
    print(&answer, json);
    Ok(if answer["granted"] == true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn request(typed: explain_arguments::Explain) -> Request {
    Request::Explain {
        export: typed.export,
        path: typed.path,
        from: typed.from,
        uid: typed.uid,
        gid: typed.gid,
        groups: typed.groups,
        operation: typed.op.to_string(),
    }
}

fn by_configuration(
    sources: Vec<Source>,
    request: &Request,
) -> Result<std::result::Result<Value, ExitCode>> {
    match Configuration::to_look_at(sources).load(None) {
        Ok((plan, _)) => explanation_json(&plan, request).map(Ok),
        Err(found) => Ok(Err(check::refused(&found))),
    }
}

fn print(answer: &Value, json: bool) {
    if json {
        say(answer);
        return;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for decision in answer["decisions"].as_array().into_iter().flatten() {
        let place = match &decision["place"] {
            Value::String(place) => format!("  [{place}]"),
            _ => String::new(),
        };
        say(format_args!("{:<20} {}{place}", text(&decision["about"]), text(&decision["text"])));
    }
    say(format_args!("{:<20} {}: {}", "answer", text(&answer["status"]), text(&answer["text"])));
}

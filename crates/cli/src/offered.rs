//! What a client at an address would be offered, as the server itself decides it.

use std::net::IpAddr;
use std::process::ExitCode;

use anyhow::Result;
use comity_export::{Plan, Source, VisibleExport};
use serde_json::{Value, json};

use crate::configuration::Configuration;
use crate::findings;
use crate::said::say;

/// Shows the exports of a configuration that a client would see, each as a line of exports(5) with
/// every option.
///
/// # Errors
/// None of its own: a configuration that is refused is told in the exit code.
pub(crate) fn show(sources: Vec<Source>, client: IpAddr, json: bool) -> Result<ExitCode> {
    match Configuration::to_look_at(sources).load(None) {
        Ok((plan, _)) => {
            plan.learn_name(client);
            print(&value(&plan, client), json);
        }
        Err(found) => return Ok(findings::refused(&found)),
    }
    Ok(ExitCode::SUCCESS)
}

/// What a client would see of a plan.
pub(crate) fn value(plan: &Plan, client: IpAddr) -> Value {
    let exports: Vec<Value> = plan.offered(client).iter().map(one).collect();
    json!({ "client": client, "exports": exports })
}

/// Prints a [`value`] for programs or people.
pub(crate) fn print(value: &Value, json: bool) {
    if json {
        say(value);
        return;
    }
    let exports = value["exports"].as_array().map(Vec::as_slice).unwrap_or_default();
    for export in exports {
        say(export["line"].as_str().unwrap_or_default());
    }
    if exports.is_empty() {
        say(format_args!("nothing is offered to {}", value["client"].as_str().unwrap_or_default()));
    }
}

fn one(offered: &VisibleExport<'_>) -> Value {
    json!({
        "path": offered.path().display().to_string(),
        "client": offered.client().to_string(),
        "options": offered.rules().to_string(),
        "line": offered.to_string(),
    })
}

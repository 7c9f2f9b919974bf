//! Shows the exports that a client at an address would see, as the server itself decides.

use std::net::IpAddr;
use std::process::ExitCode;

use anyhow::Result;
use comity_daemon::{Configuration, visible_exports_json};
use comity_export::Source;
use serde_json::Value;

use crate::check;
use crate::stdout::say;

/// Shows the exports of a configuration that a client would see, each as a line of exports(5) with
/// every option.
///
/// # Errors
/// None of its own: a refused configuration is shown by the exit code.
pub(crate) fn show(sources: Vec<Source>, client: IpAddr, json: bool) -> Result<ExitCode> {
    match Configuration::to_look_at(sources).load(None) {
        Ok((plan, _)) => {
            plan.learn_name(client);
            print(&visible_exports_json(&plan, client), json);
        }
        Err(found) => return Ok(check::refused(&found)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the exports that a client would see, as JSON or as lines of exports(5).
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

//! What a client at an address would be offered, as the server itself decides it.

use std::net::IpAddr;
use std::process::ExitCode;

use anyhow::Result;
use comity_export::{Offered, Source};
use serde_json::{Value, json};

use crate::configuration::Configuration;
use crate::findings;

/// Shows the exports that a client would see, each as a line of exports(5) with every option.
///
/// # Errors
/// None of its own: a configuration that is refused is told in the exit code.
pub(crate) fn show(sources: Vec<Source>, client: IpAddr, json: bool) -> Result<ExitCode> {
    let plan = match Configuration::to_look_at(sources).load(None) {
        Ok((plan, _)) => plan,
        Err(found) => return Ok(findings::refused(&found)),
    };
    let offered = plan.offered(client);
    if json {
        let list: Vec<Value> = offered.iter().map(value).collect();
        println!("{}", json!({ "client": client, "exports": list }));
    } else {
        offered.iter().for_each(|offered| println!("{offered}"));
        if offered.is_empty() {
            println!("nothing is offered to {client}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn value(offered: &Offered<'_>) -> Value {
    json!({
        "path": offered.path().display().to_string(),
        "client": offered.client().to_string(),
        "options": offered.rules().to_string(),
    })
}

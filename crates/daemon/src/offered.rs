//! The exports that a client would see, as JSON.

use std::net::IpAddr;

use comity_export::{Plan, VisibleExport};
use serde_json::{Value, json};

/// Returns what a client would see of a plan.
#[must_use]
pub fn offered_json(plan: &Plan, client: IpAddr) -> Value {
    let exports: Vec<Value> = plan.offered(client).iter().map(one).collect();
    json!({ "client": client, "exports": exports })
}

fn one(offered: &VisibleExport<'_>) -> Value {
    json!({
        "path": offered.path().display().to_string(),
        "client": offered.client().to_string(),
        "options": offered.rules().to_string(),
        "line": offered.to_string(),
    })
}

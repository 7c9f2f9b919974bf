//! The exports that a client would see, as JSON.

use std::net::IpAddr;

use comity_export::{Plan, VisibleExport};
use serde_json::{Value, json};

/// Returns what a client would see of a plan.
#[must_use]
pub fn visible_exports_json(plan: &Plan, client: IpAddr) -> Value {
    let exports: Vec<Value> = plan.offered(client).iter().map(one).collect();
    json!({ "client": client, "exports": exports })
}

fn one(export: &VisibleExport<'_>) -> Value {
    json!({
        "path": export.path().display().to_string(),
        "client": export.client().to_string(),
        "options": export.rules().to_string(),
        "line": export.to_string(),
    })
}

//! The placements of a running metadata server, as JSON.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use comity_export::{Export, Plan};
use comity_nfs4::Memory;
use comity_vfs::{DataServerState, Placement};
use serde_json::{Value, json};

/// Returns the data servers of each placement, or of that of one export.
///
/// # Errors
/// The export has no placement.
pub(crate) fn status(plan: &Plan, memory: &Memory, export: Option<&Path>) -> Result<Value> {
    let placed = placed(plan).filter(|(of, _)| export.is_none_or(|path| of.path() == path));
    let placements: Vec<Value> = placed.map(|(of, placement)| shown(of, placement)).collect();
    if let (Some(path), true) = (export, placements.is_empty()) {
        bail!("no export {} has data servers; `comity placement status` names all", path.display());
    }
    let layouts = if placements.is_empty() { 0 } else { memory.engine.census().layouts };
    Ok(json!({ "placements": placements, "layouts": layouts }))
}

/// The exports with placements.
fn placed(plan: &Plan) -> impl Iterator<Item = (&Arc<Export>, &dyn Placement)> {
    plan.exports().iter().filter_map(|export| Some((export, export.placement()?)))
}

fn shown(export: &Export, placement: &dyn Placement) -> Value {
    let servers: Vec<Value> = placement.servers().iter().map(server).collect();
    json!({
        "export": export.path().display().to_string(),
        "stripe_unit_bytes": placement.unit_bytes(),
        "data_servers": servers,
    })
}

fn server(server: &DataServerState) -> Value {
    json!({
        "name": server.name,
        "address": server.address,
        "is_up": server.link.is_up,
        "since_seconds": server.link.since.elapsed().as_secs(),
        "last_error": server.link.last_error,
    })
}

//! The placements of a running metadata server, as JSON.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use comity_export::{Export, Plan};
use comity_nfs4::Memory;
use comity_vfs::{
    CheckedFile, DataServerState, Handle, LayoutKind, Placement, Status, StripeFault,
};
use serde_json::{Value, json};

/// Returns the data servers of each placement, or of that of one export.
///
/// # Errors
/// The export has no placement.
pub(crate) fn status(plan: &Plan, memory: &Memory, export: Option<&Path>) -> Result<Value> {
    let placements: Vec<Value> = match export {
        Some(path) => find(plan, path).map(|(of, placement)| vec![shown(of, placement)])?,
        None => placed(plan).map(|(of, placement)| shown(of, placement)).collect(),
    };
    let layouts = if placements.is_empty() { 0 } else { memory.engine.census().layouts };
    Ok(json!({ "placements": placements, "layouts": layouts }))
}

/// Compares a page of a directory of placed files with their data servers.
///
/// # Errors
/// The export has no placement, or the directory cannot be read.
pub(crate) fn files(
    plan: &Plan,
    export: &Path,
    (directory, after): (Option<&[u8]>, u64),
) -> Result<Value> {
    let (of, placement) = find(plan, export)?;
    let directory = directory.map_or_else(|| Ok(of.top()), Handle::new)?;
    let page = placement.check(&directory, after)?;
    Ok(json!({
        "directories": directories(&page.directories),
        "files": page.files.iter().map(checked).collect::<Vec<_>>(),
        "next": page.next,
    }))
}

/// Returns a page of the names of the data files on a data server.
///
/// # Errors
/// The export has no placement, or the data server does not answer.
pub(crate) fn stored(plan: &Plan, export: &Path, (server, after): (&str, u64)) -> Result<Value> {
    let page = find(plan, export)?.1.stored(server, after);
    let page = page.map_err(|status| match status {
        Status::Delay => anyhow!("the data server {server} does not answer"),
        status => anyhow!("the data server {server} cannot list its data files: {status}"),
    })?;
    let names: Vec<_> = page.names.iter().map(|name| text(name)).collect();
    Ok(json!({ "names": names, "next": page.next }))
}

/// Notes that no file of an export names a data server any more.
///
/// # Errors
/// The export has no placement, the data server is not being drained, or files are being moved.
pub(crate) fn note_drained(plan: &Plan, export: &Path, server: &str) -> Result<Value> {
    find(plan, export)?.1.note_drained(server).map_err(|_| {
        anyhow!(
            "{server} is no longer draining, or another command moves files: set draining = true, \
             reload, and repeat this"
        )
    })?;
    Ok(Value::Null)
}

fn checked(file: &CheckedFile) -> Value {
    let fault = |(server, fault): &(Option<Box<str>>, StripeFault)| {
        let (kind, text) = described(*fault);
        json!({ "server": server, "kind": kind, "text": text })
    };
    json!({
        "name": text(&file.name),
        "handle": file.handle.bytes(),
        "fileid": file.fileid,
        "stored_name": file.stored_name,
        "servers": file.servers,
        "faults": file.faults.iter().map(fault).collect::<Vec<_>>(),
    })
}

/// The kind of a fault, and its description.
fn described(fault: StripeFault) -> (&'static str, String) {
    match fault {
        StripeFault::Missing(needs) => {
            ("lost", format!("no data file; {needs} bytes are expected"))
        }
        StripeFault::Short { has, needs } => {
            ("lost", format!("the data file has {has} bytes; {needs} are expected"))
        }
        StripeFault::Long { has, size } => {
            ("differing", format!("the data file has {has} bytes; the file ends at {size}"))
        }
        StripeFault::NoFile => ("differing", "the data file is no regular file".to_owned()),
        StripeFault::UnknownServer => {
            ("differing", "the placement names no such data server".to_owned())
        }
        StripeFault::DamagedPlace => {
            ("differing", "the attribute with the place was not written for this file".to_owned())
        }
        StripeFault::BrokenMirror => {
            ("degraded", "the mirror is broken; the others are used".to_owned())
        }
        StripeFault::FewMirrors { has, wants } => {
            let text = format!(
                "it has {has} of {wants} mirrors; `comity placement resilver` makes the others"
            );
            ("degraded", text)
        }
        StripeFault::Unchecked(status) => ("unchecked", status.to_string()),
    }
}

/// The directories of a page, for further requests.
pub(crate) fn directories(found: &[(Box<[u8]>, Handle)]) -> Vec<Value> {
    let named = |(name, handle): &(Box<[u8]>, Handle)| {
        let name = text(name);
        json!({ "name": name, "handle": handle.bytes() })
    };
    found.iter().map(named).collect()
}

/// A name for people; bytes that are not UTF-8 are replaced.
pub(crate) fn text(name: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(name)
}

pub(crate) fn find<'p>(
    plan: &'p Plan,
    export: &Path,
) -> Result<(&'p Arc<Export>, &'p dyn Placement)> {
    let found = placed(plan).find(|(of, _)| of.path() == export);
    found.with_context(|| {
        let shown = export.display();
        format!("no export {shown} has data servers; `comity placement status` names all")
    })
}

/// The exports with placements.
fn placed(plan: &Plan) -> impl Iterator<Item = (&Arc<Export>, &dyn Placement)> {
    plan.exports().iter().filter_map(|export| Some((export, export.placement()?)))
}

fn shown(export: &Export, placement: &dyn Placement) -> Value {
    let servers: Vec<Value> = placement.servers().iter().map(server).collect();
    json!({
        "export": export.path().display().to_string(),
        "layout": layout(placement.layout_kind()),
        "stripe_unit_bytes": placement.unit_bytes(),
        "data_servers": servers,
    })
}

/// The word for a kind of layouts, as in the configuration.
const fn layout(kind: LayoutKind) -> &'static str {
    match kind {
        LayoutKind::Files => "files",
        LayoutKind::FlexibleFiles => "flexible-files",
    }
}

fn server(server: &DataServerState) -> Value {
    json!({
        "name": server.name,
        "address": server.address,
        "path": server.path,
        "is_draining": server.is_draining,
        "broken_files": server.broken_files,
        "is_up": server.link.is_up,
        "since_seconds": server.link.since.elapsed().as_secs(),
        "last_error": server.link.last_error,
        "total_bytes": server.link.space.map(|space| space.bytes_total),
        "free_bytes": server.link.space.map(|space| space.bytes_available),
    })
}

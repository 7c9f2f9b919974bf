//! Labels of data files, and the places of files that are rebuilt from them, as JSON.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Result, anyhow};
use comity_export::Plan;
use comity_server::control::Request;
use comity_vfs::{Handle, NotRebuilt, Rebuild, RebuildOutcome, RebuiltFile, Status};
use serde_json::{Value, json};

use crate::placement_admin::{directories, find, text};

/// Performs a request about labels.
///
/// # Errors
/// The export has no placement, or the directory or the data server cannot be read.
pub(crate) fn perform(plan: &Plan, request: &Request) -> Result<Value> {
    match request {
        Request::PlacementLabels { export, directory, after } => {
            label(plan, export, (directory.as_deref(), *after))
        }
        Request::PlacementRebuild { export, server, after, from, except, dry_run } => {
            let of = from.as_deref().map(|from| from.as_os_str().as_bytes());
            rebuild(plan, export, (server, *after), Rebuild { of, except, changes: !dry_run })
        }
        _ => Err(anyhow!("this request is not about labels")),
    }
}

/// Writes the labels of a page of a directory.
fn label(plan: &Plan, export: &Path, (directory, after): (Option<&[u8]>, u64)) -> Result<Value> {
    let (of, placement) = find(plan, export)?;
    let directory = directory.map_or_else(|| Ok(of.top()), Handle::new)?;
    let page = placement.label(&directory, after)?;
    let failed = |(name, status): &(Box<[u8]>, Status)| {
        let name = text(name);
        json!({ "name": name, "text": status.to_string() })
    };
    Ok(json!({
        "directories": directories(&page.directories),
        "files": page.files,
        "labels": page.labels,
        "failed": page.failed.iter().map(failed).collect::<Vec<_>>(),
        "next": page.next,
    }))
}

/// Gives the files of a page of data files their places back.
fn rebuild(
    plan: &Plan,
    export: &Path,
    (server, after): (&str, u64),
    how: Rebuild<'_>,
) -> Result<Value> {
    let page = find(plan, export)?.1.rebuild(server, after, how);
    let page = page.map_err(|status| match status {
        Status::Delay => anyhow!("the data server {server} does not answer"),
        status => anyhow!("the data server {server} cannot list its data files: {status}"),
    })?;
    let files: Vec<Value> = page.files.iter().map(rebuilt).collect();
    Ok(json!({ "files": files, "next": page.next }))
}

fn rebuilt(file: &RebuiltFile) -> Value {
    let path = text(&file.path);
    let (outcome, why) = match file.outcome {
        RebuildOutcome::Kept => ("kept", None),
        RebuildOutcome::Placed => ("placed", None),
        RebuildOutcome::Created => ("created", None),
        RebuildOutcome::Left(why) => ("left", Some(reason(why, &path))),
    };
    json!({
        "stored_name": text(&file.stored_name), "path": path, "outcome": outcome, "text": why,
    })
}

/// The reason why a data file was left as it is, and what to do.
fn reason(why: NotRebuilt, path: &str) -> String {
    match why {
        NotRebuilt::NoLabel => "it has no label, so nothing tells its file".to_owned(),
        NotRebuilt::ForeignLabel => {
            "its label was not written for it, or by another key".to_owned()
        }
        NotRebuilt::OtherPlacement => {
            format!("its label names the folder {path}; `--from {path}` takes it")
        }
        NotRebuilt::NoPath => "its file is gone, and its label names no path".to_owned(),
        NotRebuilt::Elsewhere => format!(
            "its file was renamed after it was labelled as {path}; `comity placement label` looks \
             at all names: run it, and repeat this"
        ),
        NotRebuilt::InUse => "a file outside of the export has these bytes: remove its attribute \
             user.comity.placement, or the file by programs on the server"
            .to_owned(),
        NotRebuilt::SharedPath => format!(
            "other data files are of {path}, too, such as those of a file that was replaced: look \
             at them on the data servers, and remove the old ones there"
        ),
        NotRebuilt::OtherObject => format!("{path} is no regular file: move it away"),
        NotRebuilt::OtherOwner => {
            format!("{path} belongs to another user than before: change its owner, or move it away")
        }
        NotRebuilt::OtherPlace => format!("{path} has other data files"),
        NotRebuilt::OwnData => {
            format!(
                "the metadata server itself has bytes of {path}: move it away to use the others"
            )
        }
        NotRebuilt::Failed(Status::Delay) => {
            "a data server of its file does not answer, or the file is in use".to_owned()
        }
        NotRebuilt::Failed(status) => status.to_string(),
    }
}

//! The change of a placement by a reload.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use comity_export::PlacementSpec;
use comity_placement::{DataServer, FileOnServer, Placed};
use comity_vfs::{Fs, Status};

use crate::placement::{Unreached, key, settings};

/// Returns the file system of an export with the placement that the configuration has now. Nothing
/// changes for calls that use the old one. Connections to data servers that stay are kept.
///
/// # Errors
/// The reason why the placement cannot be changed without a restart, or at all, and what to do.
pub(crate) fn changed(old: &Arc<dyn Fs>, spec: Option<&PlacementSpec>) -> Result<Arc<dyn Fs>> {
    let placed = old.placement().and_then(|it| it.as_any().downcast_ref::<Placed>());
    let (Some(placed), Some(spec)) = (placed, spec) else {
        bail!(
            "a reload changes the [[placement]] of an export, but neither adds nor removes it: \
             restart the server"
        );
    };
    if key(&spec.key)? != *placed.key() {
        bail!("a reload does not change the key of a placement: restart the server");
    }
    check_removed(placed, spec)?;
    let known = &placed.settings().servers;
    let settings = settings(spec, known, Unreached::Refused)?;
    if settings == *placed.settings() {
        return Ok(Arc::clone(old));
    }
    Ok(Arc::new(placed.with(settings)))
}

/// Refuses to take out data servers on which files lie.
fn check_removed(placed: &Placed, spec: &PlacementSpec) -> Result<()> {
    let is_removed = |old: &&DataServer| spec.servers.iter().all(|new| *new.name != *old.name);
    let removed: Vec<&DataServer> = placed.settings().servers.iter().filter(is_removed).collect();
    if let Some(taking) = removed.iter().find(|server| !server.is_draining) {
        let name = &taking.name;
        bail!(
            "data server {name} still gets new files: leave it in with draining = true, reload, \
             run `comity placement drain {name}`, and then take it out"
        );
    }
    if removed.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = removed.iter().map(|server| &*server.name).collect();
    match placed.file_on(&names) {
        Ok(None) => Ok(()),
        Ok(Some(FileOnServer { fileid, server })) => bail!(
            "data server {server} has files, such as the one with the inode number {fileid}: run \
             `comity placement drain {server}` before it is taken out"
        ),
        Err(Status::Delay) => Err(anyhow!(
            "a file is being moved: take {} out when `comity placement drain` has ended",
            names.join(", ")
        )),
        Err(status) => Err(anyhow!("the files of the export cannot be walked: {status}")),
    }
}

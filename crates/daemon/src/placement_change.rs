//! The change of a placement by a reload.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use comity_export::PlacementSpec;
use comity_placement::{DataServer, Placed, PlacementSettings};
use comity_vfs::{Fs, Placement};

use crate::placement::{Unreached, key, settings};

/// Returns the file system of an export with the placement that the configuration has now. Nothing
/// changes for calls that use the old one. Connections to data servers that stay are kept.
///
/// # Errors
/// The reason why the placement cannot be changed without a restart, or at all, and what to do.
pub(crate) fn changed(old: &Arc<dyn Fs>, spec: Option<&PlacementSpec>) -> Result<Arc<dyn Fs>> {
    let (Some(placed), Some(spec)) = (placed_of(old), spec) else {
        bail!(
            "a reload changes the [[placement]] of an export, but neither adds nor removes it: \
             restart the server"
        );
    };
    let settings = changed_settings(placed, spec)?;
    if settings == *placed.settings() {
        return Ok(Arc::clone(old));
    }
    Ok(Arc::new(placed.with(settings)))
}

/// Wraps the file system of a directory in its placement, where `old` was opened for the same
/// directory and is still used.
///
/// # Errors
/// As [`changed`].
pub(crate) fn put_over_again(
    below: Arc<dyn Fs>,
    old: &Arc<dyn Fs>,
    spec: &PlacementSpec,
) -> Result<Arc<dyn Fs>> {
    let placed = placed_of(old).context("the directory has another kind of placement so far")?;
    let settings = changed_settings(placed, spec)?;
    Ok(Arc::new(placed.over(below, settings)))
}

fn placed_of(fs: &Arc<dyn Fs>) -> Option<&Placed> {
    fs.placement().and_then(|it| it.as_any().downcast_ref())
}

/// Returns the settings that a placement gets, if it can have them without a restart.
fn changed_settings(placed: &Placed, spec: &PlacementSpec) -> Result<PlacementSettings> {
    if key(&spec.key)? != *placed.key() {
        bail!("a reload does not change the key of a placement: restart the server");
    }
    if placed.settings().mirrors.is_some() != spec.mirrors.is_some() {
        bail!("a reload does not change the layout of a placement: restart the server");
    }
    check_removed(placed, spec)?;
    settings(spec, (placed.key(), &placed.settings().servers), Unreached::Refused)
}

/// Refuses to take out data servers on which files lie, or that files may name.
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
    for DataServer { name, .. } in removed {
        check_empty(placed, name)?;
        if !placed.is_drained(name) {
            bail!(
                "files without data on data server {name} may still name it: run `comity placement \
                 drain {name}` before it is taken out"
            );
        }
    }
    Ok(())
}

/// Refuses to take out a data server that has data files, or may get some. A data server that is
/// draining gets none but by moves.
fn check_empty(placed: &Placed, name: &str) -> Result<()> {
    if placed.has_moves() {
        bail!("a file is being moved: take {name} out when `comity placement drain` has ended");
    }
    let mut next = Some(0);
    while let Some(after) = next {
        let page = placed.stored(name, after).map_err(|status| {
            anyhow!(
                "data server {name} does not tell whether it has files ({status}): start it, or \
                 restart this server to take it out without that"
            )
        })?;
        if !page.names.is_empty() {
            bail!(
                "data server {name} has files: run `comity placement drain {name}` before it is \
                 taken out; `comity placement check` names files that no placed file refers to"
            );
        }
        next = page.next;
    }
    Ok(())
}

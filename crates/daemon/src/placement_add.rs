//! A data server is tried out before a placement gets it.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use comity_export::{DataServerSpec, Plan};
use comity_placement::{DataServer, Placed};
use comity_server::control::Request;
use comity_vfs::{NotRebuilt, Placement as _, Rebuild, RebuildOutcome, RebuiltFile, Status};
use serde_json::{Value, json};

use crate::placement::dial_once;
use crate::placement_admin::{find, text};

/// Dials a data server that a placement does not have yet, and looks at its folder. The answer
/// names `config`, the file in which it is to be added.
///
/// # Errors
/// The placement cannot get it, and what to do.
pub(crate) fn perform(plan: &Plan, request: &Request, config: Option<PathBuf>) -> Result<Value> {
    let Request::PlacementTry { export, name, address, path } = request else {
        bail!("this request is not about a new data server");
    };
    let (name, address, path) = (name.clone(), address.clone(), path.clone());
    let spec = DataServerSpec { name, address, path, is_draining: false };
    let placed = find(plan, export)?.1.as_any().downcast_ref::<Placed>();
    let placed = placed.context("this kind of placement gets no further data servers")?;
    let (address, files) = try_out(placed, &spec)?;
    Ok(json!({ "address": address, "files": files, "config": config }))
}

/// Returns the address of a data server that a placement can have, and the number of its files that
/// were looked at.
fn try_out(placed: &Placed, spec: &DataServerSpec) -> Result<(SocketAddr, usize)> {
    check_spec(placed, spec)?;
    let server = dial_once(spec, placed.key())?;
    let address = server.address;
    let is_same = |known: &&DataServer| known.address == address && known.path == server.path;
    if let Some(known) = placed.settings().servers.iter().find(is_same) {
        bail!("{address} is data server {} of this placement already", known.name);
    }
    let mut settings = placed.settings().clone();
    settings.servers.push(server);
    Ok((address, look_into(&placed.with(settings), &spec.name)?))
}

/// Refuses a data server that the placement has already, or of another kind.
fn check_spec(placed: &Placed, spec: &DataServerSpec) -> Result<()> {
    let settings = placed.settings();
    match (settings.mirrors.is_some(), spec.path.is_some()) {
        (true, false) => bail!("its mirrors are on stock servers: say --path and what it exports"),
        (false, true) => bail!("its data servers run `comity serve --data-server`: drop --path"),
        _ => {}
    }
    if settings.servers.iter().any(|known| *known.name == *spec.name) {
        bail!("a data server {} is there already: choose another name", spec.name);
    }
    Ok(())
}

/// Refuses a folder with files that are not of this placement; returns the number of data files
/// that were looked at. Only the first ones are: a folder with files of others begins with some.
fn look_into(placed: &Placed, server: &str) -> Result<usize> {
    let how = Rebuild { of: None, except: &[], changes: false };
    let page = placed.rebuild(server, 0, how).map_err(|status| match status {
        Status::Delay => anyhow!("data server {server} does not answer any more"),
        status => anyhow!("data server {server} does not list its folder: {status}"),
    })?;
    if let Some(foreign) = page.files.iter().find(|file| is_foreign(file)) {
        bail!(
            "its folder has files that are not of this placement, such as {}: give it an empty one",
            text(&foreign.stored_name)
        );
    }
    Ok(page.files.len())
}

fn is_foreign(file: &RebuiltFile) -> bool {
    use NotRebuilt::{ForeignLabel, NoLabel, OtherPlacement};
    matches!(file.outcome, RebuildOutcome::Left(NoLabel | ForeignLabel | OtherPlacement))
}

//! The pages of a check of placements, from a running metadata server.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use comity_server::control::Request;
use serde_json::Value;

use crate::clients::text;
use crate::common_arguments::StateFolderArguments;
use crate::control_client;
use crate::placement_arguments::PlacementArguments;

/// A placement of the server.
pub(crate) struct ShownPlacement {
    /// The path of its export.
    pub(crate) export: PathBuf,
    /// The names and addresses of its data servers.
    pub(crate) servers: Vec<(String, String)>,
    /// The names of those data servers that are being drained.
    pub(crate) draining: Vec<String>,
}

/// Requests all placements of the server that runs with a state folder.
///
/// # Errors
/// If no server can be asked.
pub(crate) fn placements(state: &StateFolderArguments) -> Result<Vec<ShownPlacement>> {
    let answer = control_client::ask(state.clone(), &Request::Placements { export: None })?;
    // Two stock servers may be one host that exports two paths.
    let place = |server: &Value| format!("{}{}", text(&server["address"]), text(&server["path"]));
    let server = |server: &Value| (text(&server["name"]).into(), place(server));
    let is_draining = |server: &&Value| server["is_draining"] == true;
    let placement = |it: &Value| ShownPlacement {
        export: text(&it["export"]).into(),
        servers: items(&it["data_servers"]).map(server).collect(),
        draining: items(&it["data_servers"])
            .filter(is_draining)
            .map(|it| text(&it["name"]).into())
            .collect(),
    };
    Ok(items(&answer["placements"]).map(placement).collect())
}

/// Requests the names of all data files on a data server, and passes them on.
///
/// # Errors
/// If the data server does not answer, or no server can be asked.
pub(crate) fn each_stored(
    state: &StateFolderArguments,
    (export, server): (&Path, &str),
    mut each: impl FnMut(&str),
) -> Result<()> {
    let mut next = Some(0);
    while let Some(after) = next {
        let (export, server) = (export.to_owned(), server.to_owned());
        let request = Request::PlacementStored { export, server, after };
        let answer = control_client::ask(state.clone(), &request)?;
        items(&answer["names"]).map(text).for_each(&mut each);
        next = answer["next"].as_u64();
    }
    Ok(())
}

/// Has the server check all placed files of an export, and passes them on with their paths.
///
/// # Errors
/// If no server can be asked, or a directory cannot be read.
pub(crate) fn each_file(
    state: &StateFolderArguments,
    export: &Path,
    mut each: impl FnMut(String, &Value) -> Result<()>,
) -> Result<()> {
    let request = |directory, after| {
        let export = export.to_owned();
        Request::PlacementFiles { export, directory, after }
    };
    each_page(state, request, |path, page| {
        let below = |of: &Value| format!("{path}/{}", text(&of["name"]));
        items(&page["files"]).try_for_each(|file| each(below(file), file))
    })
}

/// Passes on the pages of a directory and of all directories below it, each with the path of its
/// directory. `request` makes the request for a page of a directory after a cookie.
///
/// # Errors
/// If no server can be asked, or a directory cannot be read.
pub(crate) fn each_page(
    state: &StateFolderArguments,
    request: impl Fn(Option<Vec<u8>>, u64) -> Request,
    mut each: impl FnMut(&str, &Value) -> Result<()>,
) -> Result<()> {
    let mut left: Vec<(String, Option<Vec<u8>>)> = vec![(String::new(), None)];
    while let Some((path, directory)) = left.pop() {
        let mut next = Some(0);
        while let Some(after) = next {
            let page = control_client::ask(state.clone(), &request(directory.clone(), after))?;
            each(&path, &page)?;
            let below = |of: &Value| format!("{path}/{}", text(&of["name"]));
            let found = items(&page["directories"]);
            left.extend(found.map(|it| (below(it), Some(handle(&it["handle"])))));
            next = page["next"].as_u64();
        }
    }
    Ok(())
}

/// Requests the placements of the server that a command is about.
///
/// # Errors
/// If no server can be asked, or the export has no data servers.
pub(crate) fn meant_placements(typed: &PlacementArguments) -> Result<Vec<ShownPlacement>> {
    let mut all = placements(&typed.state)?;
    if let Some(export) = &typed.export {
        all.retain(|it| it.export == *export);
        if all.is_empty() {
            let export = export.display();
            bail!("no export {export} has data servers; `comity placement status` names all");
        }
    }
    Ok(all)
}

/// The bytes of a handle.
pub(crate) fn handle(value: &Value) -> Vec<u8> {
    items(value).filter_map(|byte| byte.as_u64()?.try_into().ok()).collect()
}

/// The elements of a list.
pub(crate) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

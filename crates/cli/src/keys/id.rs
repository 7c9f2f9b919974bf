//! `comity id`: the id by which grants name an object.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use comity_grants::ObjectId;
use rustix::fs::{getxattr, statfs};
use serde_json::json;

use crate::key_arguments::Id;
use crate::other_process::run_within;
use crate::stdout::say;

/// The extended attribute by which a mount shows the id that the server gives to an object.
const ATTRIBUTE: &str = "user.comity.id";

/// Time for which the file system of an object may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest id in bytes.
const ID_BYTES_MAX: usize = 1024;

/// The file system type of an NFS mount (statfs(2)).
const NFS_SUPER_MAGIC: i64 = 0x6969;

/// Prints the id of an object.
///
/// # Errors
/// If the object does not exist, or its server reports no ids, or does not answer.
pub(crate) fn show(typed: &Id) -> Result<ExitCode> {
    let id = if typed.here { id_of(&typed.path)? } else { asked(&typed.path)? };
    if typed.json.json {
        say(json!({ "id": id.to_string() }))
    } else {
        say(id)
    }
    Ok(ExitCode::SUCCESS)
}

/// The object that a user named by its id or its path.
///
/// # Errors
/// As for [`show`].
pub(crate) fn named(path: &Path) -> Result<ObjectId> {
    match path.to_str().and_then(|text| text.parse().ok()) {
        Some(id) => Ok(id),
        None => asked(path),
    }
}

/// Asks for an id in another process: a look at a file in a mount may wait for ever for its server.
fn asked(path: &Path) -> Result<ObjectId> {
    let words = ["id", "--here", "--"].map(OsStr::new);
    let said = run_within(words.into_iter().chain([path.as_os_str()]), PATIENCE)?;
    let said = said.with_context(|| {
        format!(
            "{}: its file system did not answer within {} s: the server of its mount, or the \
             program of the mount, is stopped or hangs; look at them, or run this on the server",
            path.display(),
            PATIENCE.as_secs()
        )
    })?;
    Ok(said.trim_end().parse()?)
}

fn id_of(path: &Path) -> Result<ObjectId> {
    let shown = path.display();
    let mut value = vec![0; ID_BYTES_MAX];
    if let Ok(length) = getxattr(path, ATTRIBUTE, &mut value) {
        let text = value.get(..length).and_then(|text| std::str::from_utf8(text).ok());
        let id = text.and_then(|text| text.parse().ok());
        return id.with_context(|| format!("the server of {shown} tells no id that can be used"));
    }
    let found = statfs(path).with_context(|| format!("cannot look at {shown}"))?;
    if found.f_type as i64 == NFS_SUPER_MAGIC {
        bail!(
            "{shown} is in an NFS mount whose server tells no ids: mount with vers=4.2, or run \
             this on the server"
        );
    }
    let handle = comity_backend::handle_of(path).with_context(|| format!("{shown} has no id"))?;
    Ok(ObjectId(handle))
}

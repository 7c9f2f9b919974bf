use std::io::{ErrorKind, Result};

use crate::suite::{FileKind, Files};

/// Removes a directory with all that is in it; one that is not there is none to remove.
///
/// # Errors
/// As the target says.
pub(super) fn clear(files: &mut dyn Files, path: &str) -> Result<()> {
    match files.lookup(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        looked => looked.map(drop)?,
    }
    remove(files, path)
}

fn remove(files: &mut dyn Files, path: &str) -> Result<()> {
    for entry in files.list(path, true)? {
        let below = format!("{path}/{}", entry.name);
        match entry.metadata.map(|metadata| metadata.kind) {
            Some(FileKind::Directory) => remove(files, &below)?,
            _ => files.remove(&below)?,
        }
    }
    files.remove_directory(path)
}

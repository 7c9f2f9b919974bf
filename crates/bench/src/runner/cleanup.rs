use std::io::{ErrorKind, Result};

use crate::suite::{FileKind, Files};

/// Removes a directory with its content; it is not an error if it does not exist.
///
/// # Errors
/// Those of the target.
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

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use anyhow::{Context, Result};
use comity_bench::fixture_tree::CALLER;
use tempfile::TempDir;

/// Files of a directory, about as many as in the tree of 2003.
const FILES_IN_DIRECTORY: u64 = 21;
/// Bytes of a file.
const BYTES: usize = 12 << 10;

/// The path of a directory, from the top.
#[must_use]
pub fn directory(number: u64) -> String {
    format!("d{number}")
}

/// The path of a file, from the top.
#[must_use]
pub fn file(number: u64) -> String {
    format!("{}/f{number}", directory(number / FILES_IN_DIRECTORY))
}

/// Makes `files` files that belong to the account. They are removed when the result is dropped.
///
/// # Errors
/// If the file system fails.
pub(super) fn build(place: &Path, files: u64) -> Result<TempDir> {
    let top = tempfile::Builder::new().prefix("comity-grants-").tempdir_in(place);
    let top = top.with_context(|| format!("make a folder in {}", place.display()))?;
    crate::server_process::open_to_all(top.path())?;
    let own = |path: &Path| chown(path, Some(CALLER), Some(CALLER));
    own(top.path())?;
    for number in 0..files.div_ceil(FILES_IN_DIRECTORY) {
        let path = top.path().join(directory(number));
        fs::create_dir(&path)?;
        own(&path)?;
    }
    for number in 0..files {
        let path = top.path().join(file(number));
        fs::write(&path, [number as u8; BYTES])?;
        own(&path)?;
    }
    Ok(top)
}

//! The paths of the control sockets of mounts: one folder below the state folder, with a name for
//! each mount point. No call goes through the mount to find them.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::common_arguments::StateFolderArguments;
use crate::settings;

/// The folder of the sockets below the state folder.
const FOLDER: &str = "mounts";

/// The suffix of the names of the sockets.
const ENDING: &str = ".sock";

/// The folder of the sockets of all mounts of a user.
///
/// # Errors
/// If the user has no folder for the state of programs.
pub(crate) fn folder(typed: &StateFolderArguments) -> Result<PathBuf> {
    let is_root = rustix::process::geteuid().is_root();
    Ok(settings::state_folder(typed.state_dir.clone(), is_root)?.join(FOLDER))
}

/// Returns the folder of the sockets, and makes it if it is missing. Other users cannot read it.
pub(crate) fn made_folder(typed: &StateFolderArguments) -> Result<PathBuf> {
    let folder = folder(typed)?;
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// The socket of the mount on a directory, whose path [`resolved`] has returned.
pub(crate) fn path(folder: &Path, dir: &Path) -> PathBuf {
    folder.join(format!("{:016x}{ENDING}", mark(dir.as_os_str().as_encoded_bytes())))
}

/// All sockets in a folder, in the order of their names.
pub(crate) fn all(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_socket = |path: &PathBuf| path.to_string_lossy().ends_with(ENDING);
    let mut sockets: Vec<PathBuf> = paths.filter(is_socket).collect();
    sockets.sort();
    sockets
}

/// The path of a directory with its parent resolved. The directory itself is not looked at, as that
/// would call the program that serves it.
pub(crate) fn resolved(dir: &Path) -> PathBuf {
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    // `components` drops a slash at the end.
    let whole: PathBuf = whole.components().collect();
    match (whole.parent().map(fs::canonicalize), whole.file_name()) {
        (Some(Ok(above)), Some(name)) => above.join(name),
        _ => whole,
    }
}

/// A hash of bytes (FNV-1a with 64 bits) that is the same in all versions of this program.
fn mark(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(BASIS, |mark, byte| (mark ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_socket_by_whichever_path_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(root.join("a")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("link")).unwrap();
        let named = |text: &str| path(Path::new("/run"), &resolved(&root.join(text)));
        assert_eq!(named("a/dir"), named("link/dir/"));
        assert_ne!(named("a/dir"), named("a/other"));
        assert_eq!(mark(b"a"), 0xaf63_dc4c_8601_ec8c, "the published value of FNV-1a");
    }
}

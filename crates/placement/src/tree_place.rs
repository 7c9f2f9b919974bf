use comity_vfs::{Cred, Fs, Handle, Result};

use crate::limits::DEPTH_MAX;

/// The place of a file that a handle names. A disk may have more than the tree of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreePlace {
    /// The file has a name in the tree.
    Inside,
    /// The file has a name, and none that was found is in the tree.
    Outside,
    /// The file has no name that was found.
    Unknown,
}

/// Returns whether a file is in the tree of a file system. It is no directory.
pub(crate) fn tree_place(fs: &dyn Fs, file: &Handle) -> Result<TreePlace> {
    let directories = fs.directories_of(file)?;
    Ok(match directories.iter().any(|dir| is_below_root(fs, *dir)) {
        true => TreePlace::Inside,
        false if directories.is_empty() => TreePlace::Unknown,
        false => TreePlace::Outside,
    })
}

fn is_below_root(fs: &dyn Fs, mut dir: Handle) -> bool {
    let top = fs.root();
    for _ in 0..DEPTH_MAX {
        match fs.parent(&Cred::root(), &dir) {
            _ if dir == top => return true,
            Ok(parent) if parent.handle != dir => dir = parent.handle,
            _ => return false,
        }
    }
    false
}

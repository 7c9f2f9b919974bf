//! The folder of one server below a cache folder: docs/formats.md, "Disk cache".

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use xxhash_rust::xxh3::xxh3_64;

use crate::disk::Disk;

const FORMAT: &str = "comity-cache 1";

/// File systems (`f_type` of statfs(2)) on which a cache is useless, because they may be as remote
/// as the cached one: NFS, CIFS, SMB2, FUSE.
const FAR: [i64; 4] = [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546];

/// The reason why a cache folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another process uses the folder.
    #[error(
        "{}: another mount of this server uses the cache; give it another dc_root",
        .0.display()
    )]
    InUse(PathBuf),
    /// The folder is on a network file system.
    #[error("{}: it is on a network file system; choose a dc_root on a local disk", .0.display())]
    Far(PathBuf),
    /// The folder was made by another program or another version.
    #[error(
        "{}: not a cache of this format; move it away, or choose another dc_root",
        .0.display()
    )]
    Foreign(PathBuf),
    /// The disk reported an error.
    #[error("{}: {error}; choose another dc_root", folder.display())]
    Failed {
        /// The folder.
        folder: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl Disk {
    /// Opens the folder of a server in a cache folder.
    ///
    /// # Errors
    /// [`FolderError`], which says what to do.
    pub fn of_server(root: &Path, identity: &str) -> Result<Self, FolderError> {
        let folder = folder_of(root, identity);
        let failed = |error| match error {
            error if io::Error::kind(&error) == ErrorKind::WouldBlock => {
                FolderError::InUse(folder.clone())
            }
            error => FolderError::Failed { folder: folder.clone(), error },
        };
        let disk = Self::open(&folder).map_err(failed)?;
        let kind = statfs(&folder).map_err(|errno| failed(errno.into()))?.f_type as i64;
        if FAR.contains(&(kind & 0xffff_ffff)) {
            return Err(FolderError::Far(folder));
        }
        let (path, wanted) = (folder.join("format"), format!("{FORMAT}\n{identity}\n"));
        match fs::read_to_string(&path) {
            Ok(found) if found == wanted => Ok(disk),
            Ok(_) => Err(FolderError::Foreign(folder)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::write(&path, wanted).map_err(failed)?;
                Ok(disk)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Opens the folder of a server if its journal contains data and no other process uses it.
    #[must_use]
    pub fn left_by_server(root: &Path, identity: &str) -> Option<Self> {
        let journal = folder_of(root, identity).join(crate::journal::PATH);
        let is_left = fs::metadata(journal).is_ok_and(|attr| attr.len() > 0);
        if is_left { Self::of_server(root, identity).ok() } else { None }
    }
}

fn folder_of(root: &Path, identity: &str) -> PathBuf {
    root.join(format!("{:016x}", xxh3_64(identity.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_its_own_folder_which_one_process_uses() {
        let root = tempfile::tempdir().unwrap();
        let first = Disk::of_server(root.path(), "one").unwrap();
        let _other = Disk::of_server(root.path(), "other").unwrap();
        let error = Disk::of_server(root.path(), "one").unwrap_err();
        assert!(matches!(error, FolderError::InUse(_)), "{error}");
        drop(first);
        Disk::of_server(root.path(), "one").unwrap();
    }

    #[test]
    fn a_folder_of_another_format_is_refused() {
        let root = tempfile::tempdir().unwrap();
        drop(Disk::of_server(root.path(), "one").unwrap());
        let folder = fs::read_dir(root.path()).unwrap().next().unwrap().unwrap().path();
        fs::write(folder.join("format"), "comity-cache 2\none\n").unwrap();
        let error = Disk::of_server(root.path(), "one").unwrap_err();
        assert!(matches!(error, FolderError::Foreign(_)), "{error}");
        assert!(error.to_string().contains("another dc_root"));
    }
}

use std::path::{Path, PathBuf};
use std::sync::Arc;

use comity_vfs::AsServer;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::umask;

use super::Passthrough;
use super::access::thread_credentials::Identity;
use super::capabilities::Capabilities;
use super::handles::cache::Cache;
use super::handles::descriptors::Descriptors;
use super::handles::path_cache::PathCache;
use super::handles::siblings::Siblings;
use super::leases::lease::Leases;
use super::mounts::Mounts;
use super::mounts::mount::{Mount, Reach};
use crate::LeaseWatch;

/// Options for serving a directory.
#[derive(Debug, Clone, Default)]
pub struct PassthroughOptions {
    /// True if file systems mounted below the root are shown too (`crossmnt` of exports(5)); else
    /// the directories that they cover are.
    pub cross_mounts: bool,
    /// The descriptors that may be kept open; by default all that the process may have, for this
    /// one file system.
    pub descriptors: Option<Descriptors>,
    /// Reports that programs open files that are held ([`comity_vfs::LocalLocks::hold_file`]);
    /// without it, no files can be held.
    pub leases: Option<Arc<LeaseWatch>>,
    /// The file systems of this process that may show the same files.
    pub siblings: Siblings,
}

/// Why a directory cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The path does not exist.
    #[error("{}: no such directory; create it, or correct the path", .0.display())]
    NotThere(PathBuf),
    /// The path is not a directory.
    #[error("{}: not a directory; export the directory that holds it", .0.display())]
    NotDirectory(PathBuf),
    /// The server's user may not open it.
    #[error("{}: permission denied; let the server's user enter it, or run as root", .0.display())]
    NoPermission(PathBuf),
    /// The file system refused.
    #[error("{}: {reason}; check the file system it is on", path.display())]
    Failed {
        /// The directory.
        path: PathBuf,
        /// The kernel's error.
        reason: String,
    },
}

impl Passthrough {
    /// Opens the directory `root`.
    ///
    /// Sets the process's file mode mask to zero, so that modes are those that clients ask for.
    /// Logs a warning for each ability that is missing.
    ///
    /// # Errors
    /// [`OpenError`], which says what to do about it.
    pub fn open(root: &Path, options: PassthroughOptions) -> Result<Self, OpenError> {
        umask(Mode::empty());
        let identity = Identity::available();
        let refused = |_| OpenError::NoPermission(root.to_owned());
        let server = AsServer::here().map_err(refused)?;
        let top = Mount::open(&server, root).map_err(|errno| explain(root, errno))?;
        let searched = top.reach() == Reach::BySearch;
        let descriptors = options.descriptors.unwrap_or_else(Descriptors::of_process);
        let opened = Self {
            root: top.root,
            identity,
            server_uid: rustix::process::geteuid().as_raw(),
            mounts: Mounts::new(&server, top, root, options.cross_mounts),
            nodes: Cache::new(descriptors.share()),
            cursors: Default::default(),
            snapshots: Default::default(),
            paths: PathCache::new(searched || options.cross_mounts),
            siblings: options.siblings,
            leases: Leases::new(options.leases, identity),
        };
        opened.siblings.join(opened.number_of(opened.mounts.top()));
        for shortcoming in opened.capabilities().shortcomings() {
            tracing::warn!(root = %root.display(), "{shortcoming}");
        }
        Ok(opened)
    }

    /// Returns the abilities of this process for the directory.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        let top = self.mounts.top();
        Capabilities {
            kernel_handles: top.reach() == Reach::ByHandle,
            caller_identities: self.identity == Identity::PerCaller,
            private_mount: top.private,
            still_links: top.is_still(),
            all_leases: self.leases.hold_all,
        }
    }
}

fn explain(path: &Path, errno: Errno) -> OpenError {
    let path = path.to_owned();
    match errno {
        Errno::NOENT => OpenError::NotThere(path),
        Errno::NOTDIR => OpenError::NotDirectory(path),
        Errno::ACCESS | Errno::PERM => OpenError::NoPermission(path),
        errno => OpenError::Failed { path, reason: errno.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let error = Passthrough::open(&missing, PassthroughOptions::default()).unwrap_err();
        assert_eq!(error, OpenError::NotThere(missing));
        assert!(error.to_string().contains("create it"), "{error}");
        let file = folder.path().join("file");
        std::fs::write(&file, b"").unwrap();
        let error = Passthrough::open(&file, PassthroughOptions::default()).unwrap_err();
        assert_eq!(error, OpenError::NotDirectory(file));
    }
}

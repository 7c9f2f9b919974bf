//! The reasons why a file system could not be mounted, and what to do about each.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// The device through which the kernel speaks with the programs that serve file systems.
pub(crate) const DEVICE: &str = "/dev/fuse";

/// The program that mounts for ordinary users.
pub(crate) const HELPER: &str = "fusermount3";

/// The reason why a file system could not be mounted or unmounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// Nothing is there.
    #[error("{}: no such directory; create it: mkdir -p {}", .0.display(), .0.display())]
    NotThere(PathBuf),
    /// Something else is there.
    #[error("{}: not a directory; name an empty directory to mount on", .0.display())]
    NotDirectory(PathBuf),
    /// The user may not use the directory.
    #[error("{}: permission denied; name a directory of your own to mount on", .0.display())]
    NoPermission(PathBuf),
    /// It has entries, which the mount would hide.
    #[error(
        "{}: the directory is not empty; empty it, or mount with -o nonempty to hide what \
         is in it",
        .0.display()
    )]
    NotEmpty(PathBuf),
    /// Something is mounted there.
    #[error(
        "{}: something is mounted here already; first: comity umount {}",
        .0.display(), .0.display()
    )]
    AlreadyMounted(PathBuf),
    /// A mount there whose program has ended.
    #[error(
        "{}: a mount is left here whose program has ended; first: comity umount {}",
        .0.display(), .0.display()
    )]
    Left(PathBuf),
    /// The kernel has no FUSE.
    #[error(
        "{DEVICE} is not there: load it (as root: modprobe fuse), or have it given to your \
         container (--device {DEVICE})"
    )]
    NoDevice,
    /// The device may not be opened.
    #[error(
        "{DEVICE} may not be opened by you: as root: chmod 666 {DEVICE}, or join the \
         group that owns it"
    )]
    DeviceDenied,
    /// An ordinary user mounts by a program that is not there.
    #[error(
        "{HELPER} is not there, which mounts for ordinary users: install it (Debian: \
         apt install fuse3), or mount as root"
    )]
    NoHelper,
    /// The administrator has not allowed it.
    #[error(
        "other users may not be let in: add the line user_allow_other to /etc/fuse.conf, or \
         leave out -o allow_other"
    )]
    OthersNotAllowed,
    /// Nothing is mounted there.
    #[error(
        "{}: not a mount point; see `mount -t fuse` for those that there are",
        .0.display()
    )]
    NotMounted(PathBuf),
    /// Programs use it.
    #[error(
        "{}: in use; end the programs that use it (fuser -vm {}), or detach it now and \
         let them end later: comity umount --lazy {}",
        .0.display(), .0.display(), .0.display()
    )]
    Busy(PathBuf),
    /// The kernel refused.
    #[error("{}: {reason}", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
        /// The error.
        reason: String,
    },
}

impl MountError {
    /// Explains an error of mounting on `dir` that the checks before did not foresee.
    pub(crate) fn of_mounting(dir: &Path, error: &io::Error, is_root: bool) -> Self {
        let said = error.to_string();
        let missing = error.kind() == ErrorKind::NotFound;
        if missing && !Path::new(DEVICE).exists() {
            return Self::NoDevice;
        }
        if missing && !is_root {
            return Self::NoHelper;
        }
        if said.contains("user_allow_other") {
            return Self::OthersNotAllowed;
        }
        if error.kind() == ErrorKind::PermissionDenied {
            return Self::DeviceDenied;
        }
        Self::Failed { dir: dir.to_owned(), reason: said }
    }

    /// The same for a look at the directory.
    pub(crate) fn of_looking(dir: &Path, error: &io::Error) -> Self {
        let path = dir.to_owned();
        let errno = error.raw_os_error().map(Errno::from_raw_os_error);
        match errno {
            Some(Errno::NOENT) => Self::NotThere(path),
            Some(Errno::NOTDIR) => Self::NotDirectory(path),
            Some(Errno::ACCESS | Errno::PERM) => Self::NoPermission(path),
            Some(Errno::NOTCONN) => Self::Left(path),
            _ => Self::Failed { dir: path, reason: error.to_string() },
        }
    }
}

//! The reasons why a mount fails, and what to do about each.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// The device by which the kernel communicates with file system programs.
pub(crate) const DEVICE: &str = "/dev/fuse";

/// The program that mounts on behalf of ordinary users.
pub(crate) const HELPER: &str = "fusermount3";

/// The reason why a mount or unmount failed.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The path does not exist.
    #[error("{}: no such directory; create it: mkdir -p {}", .0.display(), .0.display())]
    NotThere(PathBuf),
    /// The path is not a directory.
    #[error("{}: not a directory; name an empty directory to mount on", .0.display())]
    NotDirectory(PathBuf),
    /// The user may not use the directory.
    #[error("{}: permission denied; name a directory of your own to mount on", .0.display())]
    NoPermission(PathBuf),
    /// The directory has entries, which the mount would hide.
    #[error(
        "{}: the directory is not empty; empty it, or mount with -o nonempty to hide what \
         is in it",
        .0.display()
    )]
    NotEmpty(PathBuf),
    /// Another file system is mounted there.
    #[error(
        "{}: something is mounted here already; first: comity umount {}",
        .0.display(), .0.display()
    )]
    AlreadyMounted(PathBuf),
    /// A mount is left there whose program has ended.
    #[error(
        "{}: a mount is left here whose program has ended; first: comity umount {}",
        .0.display(), .0.display()
    )]
    Left(PathBuf),
    /// The kernel's FUSE device does not exist.
    #[error(
        "{DEVICE} is not there: load it (as root: modprobe fuse), or have it given to your \
         container (--device {DEVICE})"
    )]
    NoDevice,
    /// The user may not open the device.
    #[error(
        "{DEVICE} may not be opened by you: as root: chmod 666 {DEVICE}, or join the \
         group that owns it"
    )]
    DeviceDenied,
    /// The helper program for ordinary users is missing.
    #[error(
        "{HELPER} is not there, which mounts for ordinary users: install it (Debian: \
         apt install fuse3), or mount as root"
    )]
    NoHelper,
    /// The administrator has not allowed mounts for other users.
    #[error(
        "other users may not be let in: add the line user_allow_other to /etc/fuse.conf, or \
         leave out -o allow_other"
    )]
    OthersNotAllowed,
    /// The directory is not a mount point.
    #[error(
        "{}: not a mount point; see `mount -t fuse` for those that there are",
        .0.display()
    )]
    NotMounted(PathBuf),
    /// Programs use the mount.
    #[error(
        "{}: in use; end the programs that use it (fuser -vm {}), or detach it now and \
         let them end later: comity umount --lazy {}",
        .0.display(), .0.display(), .0.display()
    )]
    Busy(PathBuf),
    /// Another error of the kernel.
    #[error("{}: {reason}", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
        /// The error.
        reason: String,
    },
}

impl MountError {
    /// Makes the error of a mount on `dir` that failed despite the checks before it.
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

    /// Makes the error of a failed check of a directory.
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

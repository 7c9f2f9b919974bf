use std::time::Duration;

use crate::{Handle, Result};

/// The interface of a file system to other programs of this machine: it prevents them from using
/// files that clients have locked or been delegated.
///
/// These programs see all users of the file system as a single process.
pub trait LocalLocks: Send + Sync {
    /// Locks bytes of a file, from the first to the last, against programs that lock them, too;
    /// [`RangeLock::Free`] unlocks them. Returns `false` and changes nothing if such a program has
    /// locked some of them. Unlocking all bytes (0 to [`u64::MAX`]) releases the file. Calls for
    /// one file are never concurrent.
    ///
    /// # Errors
    /// [`crate::Status::Delay`] while too many files are locked; [`crate::Status`].
    fn hold_range(&self, node: &Handle, bytes: (u64, u64), lock: RangeLock) -> Result<bool>;

    /// Returns whether [`LocalLocks::hold_range`] would succeed.
    ///
    /// # Errors
    /// As [`LocalLocks::hold_range`].
    fn is_range_free(&self, node: &Handle, bytes: (u64, u64), lock: RangeLock) -> Result<bool>;

    /// Holds a file against programs that open it, or a directory against programs that change it
    /// ([`FileHold::Directory`]). A program whose open conflicts waits until the
    /// file is released, or as long as the kernel lets it wait, and [`LocalLocks::poll_wanted`]
    /// reports the open. Returns `false` if a program has the file open, or if the kernel cannot
    /// report opens. The file then keeps its earlier hold, or loses it.
    ///
    /// # Errors
    /// [`crate::Status::Delay`] while too many files are held; [`crate::Status`].
    fn hold_file(&self, node: &Handle, hold: FileHold) -> Result<bool>;

    /// Checks that directories of this file system can be held like this.
    ///
    /// # Errors
    /// The reason why they cannot, which says what to do, as a text for users.
    fn may_hold_directories(&self, hold: DirectoryHold) -> std::result::Result<(), String>;

    /// Returns a held file that a program waits for or has changed; reports each once.
    fn poll_wanted(&self) -> Option<(Handle, LocalUse)>;
}

/// A hold on a file against programs of this machine that open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileHold {
    /// Programs may use the file freely.
    Free,
    /// Programs may read the file and not write it.
    Shared,
    /// Programs may neither read nor write the file.
    Exclusive,
    /// Programs may read the directory. Their changes are noticed.
    Directory(DirectoryHold),
}

/// The way in which changes of a held directory by programs of this machine are noticed: its names,
/// its owner, mode, times and extended attributes, and renames of the directory itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectoryHold {
    /// A change is reported after it was made ([`LocalUse::Change`]).
    Late,
    /// A program that changes the directory waits until the directory is released
    /// ([`LocalUse::Open`]). A change that another change by the server itself overlaps is reported
    /// as with [`DirectoryHold::Late`].
    Wait,
}

/// The use that a program of this machine makes of a file that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalUse {
    /// A program waits to open the file, or to change the directory.
    Open,
    /// Another user of the file system waits for the file, on whatever machine. The server loses
    /// the file system if it does not release the file within this time.
    OpenWithin(Duration),
    /// A program has renamed, removed or linked the file, or changed its attributes, and does not
    /// wait; or it has changed the directory.
    Change,
}

/// A lock on bytes of a file against programs of this machine that lock them, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RangeLock {
    /// The range is not locked.
    Free,
    /// Programs may read the bytes.
    Shared,
    /// No program may use the bytes.
    Exclusive,
}

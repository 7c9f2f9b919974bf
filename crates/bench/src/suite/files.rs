use std::io::Result;

use comity_remote::file::{Entry, Metadata};

/// The operations on files that workloads consist of, for one worker at one target.
///
/// Paths are relative to the target's top, with `/` between names. Errors contain an error number
/// if the target gave one; the caller adds the path.
pub trait Files: Send {
    /// Makes a directory.
    ///
    /// # Errors
    /// The target's error.
    fn make_directory(&mut self, path: &str) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// The target's error.
    fn remove_directory(&mut self, path: &str) -> Result<()>;

    /// Makes a file, empty if there is one, and opens it for reading and writing.
    ///
    /// # Errors
    /// The target's error.
    fn create(&mut self, path: &str) -> Result<FileId>;

    /// Opens an existing file.
    ///
    /// # Errors
    /// The target's error.
    fn open(&mut self, path: &str, access: Access) -> Result<FileId>;

    /// Closes a file.
    ///
    /// # Errors
    /// The target's error, which may be a late failure of an earlier write.
    fn close(&mut self, file: FileId) -> Result<()>;

    /// Reads into `buffer` from byte `offset` on; returns the number of bytes, which is smaller
    /// than asked only at the end.
    ///
    /// # Errors
    /// The target's error.
    fn read(&mut self, file: FileId, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// Writes at byte `offset`; returns the number of bytes written.
    ///
    /// # Errors
    /// The target's error.
    fn write(&mut self, file: FileId, offset: u64, data: &[u8]) -> Result<usize>;

    /// Puts the written data of the file on stable storage.
    ///
    /// # Errors
    /// The target's error.
    fn sync(&mut self, file: FileId) -> Result<()>;

    /// Attributes of an open file, asked of the target (`fstat`, GETATTR).
    ///
    /// # Errors
    /// The target's error.
    fn attributes(&mut self, file: FileId) -> Result<Metadata>;

    /// Attributes of a name (`lstat`, LOOKUP).
    ///
    /// # Errors
    /// The target's error.
    fn lookup(&mut self, path: &str) -> Result<Metadata>;

    /// The entries of a directory without `.` and `..`; with their attributes (`ls -l`) if asked.
    ///
    /// # Errors
    /// The target's error.
    fn list(&mut self, path: &str, attributes: bool) -> Result<Vec<Entry>>;

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// The target's error.
    fn make_link(&mut self, path: &str, to: &str) -> Result<()>;

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    /// The target's error.
    fn read_link(&mut self, path: &str) -> Result<String>;

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    /// The target's error.
    fn remove(&mut self, path: &str) -> Result<()>;

    /// Gives a file to a user and group.
    ///
    /// # Errors
    /// The target's error.
    fn set_owner(&mut self, path: &str, user: u32, group: u32) -> Result<()>;

    /// Acquires or releases a lock on a range of a file. The lock belongs to this open file.
    ///
    /// # Errors
    /// The target's error; EOPNOTSUPP over NFSv3, which has no locks.
    fn lock(&mut self, file: FileId, kind: LockKind, range: Range, wait: Wait) -> Result<()>;
}

/// An open file, among those of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// The access for which a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// The kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Excludes writers.
    Shared,
    /// Excludes all others.
    Exclusive,
    /// Releases the range.
    Unlock,
}

/// A range of a file in bytes; length 0 reaches to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// The choice of waiting for a conflicting lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Waits until the lock is free.
    Yes,
    /// Does not wait: a conflicting lock gives EAGAIN.
    No,
}

use std::io::Result;

use comity_remote::file::{Entry, Metadata};

/// The operations on files that workloads are made of, as one worker sees one target.
///
/// Paths are relative to the target's top, with `/` between names. Errors carry an error number
/// wherever the target gave one; who calls adds the path.
pub trait Files: Send {
    /// Makes a directory.
    ///
    /// # Errors
    /// As the target says; so for all that follow.
    fn make_directory(&mut self, path: &str) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As above.
    fn remove_directory(&mut self, path: &str) -> Result<()>;

    /// Makes a file, empty if there is one, and opens it for reading and writing.
    ///
    /// # Errors
    /// As above.
    fn create(&mut self, path: &str) -> Result<FileId>;

    /// Opens a file that is there.
    ///
    /// # Errors
    /// As above.
    fn open(&mut self, path: &str, access: Access) -> Result<FileId>;

    /// Closes a file.
    ///
    /// # Errors
    /// As above: a late failure of writes among them.
    fn close(&mut self, file: FileId) -> Result<()>;

    /// Reads into `buffer` from byte `offset` on; gives how many bytes there were, fewer than asked
    /// for only at the end.
    ///
    /// # Errors
    /// As above.
    fn read(&mut self, file: FileId, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// Writes at byte `offset`; gives how many bytes were taken.
    ///
    /// # Errors
    /// As above.
    fn write(&mut self, file: FileId, offset: u64, data: &[u8]) -> Result<usize>;

    /// Puts what was written to the file on stable storage.
    ///
    /// # Errors
    /// As above.
    fn sync(&mut self, file: FileId) -> Result<()>;

    /// Attributes of an open file, asked of the target (`fstat`, GETATTR).
    ///
    /// # Errors
    /// As above.
    fn attributes(&mut self, file: FileId) -> Result<Metadata>;

    /// Attributes of a name (`lstat`, LOOKUP).
    ///
    /// # Errors
    /// As above.
    fn lookup(&mut self, path: &str) -> Result<Metadata>;

    /// The entries of a directory without `.` and `..`; with their attributes (`ls -l`) if asked.
    ///
    /// # Errors
    /// As above.
    fn list(&mut self, path: &str, attributes: bool) -> Result<Vec<Entry>>;

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As above.
    fn make_link(&mut self, path: &str, to: &str) -> Result<()>;

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    /// As above.
    fn read_link(&mut self, path: &str) -> Result<String>;

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    /// As above.
    fn remove(&mut self, path: &str) -> Result<()>;

    /// Gives a file to a user and group.
    ///
    /// # Errors
    /// As above.
    fn set_owner(&mut self, path: &str, user: u32, group: u32) -> Result<()>;

    /// Takes or gives back a lock on a stretch of a file. The lock belongs to this open file.
    ///
    /// # Errors
    /// As above; unsupported where the target has no locks.
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

/// The kind of a lock, by what it excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Writers.
    Shared,
    /// All others.
    Exclusive,
    /// Nobody any more.
    Unlock,
}

/// A stretch of a file in bytes; length 0 reaches to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// The choice of waiting for a lock that somebody else has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until it is free.
    Yes,
    /// Not at all: the error is EAGAIN.
    No,
}

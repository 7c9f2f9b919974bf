//! The seam between the cache and the disk that it lives on.

use std::io;

/// A folder with files, named by paths below it whose components are separated by `/`. All calls
/// may come from several threads at once.
///
/// Nothing is on stable storage before [`Medium::sync`] of its file: until then a crash may keep
/// any part of what was written, in any order.
pub trait Medium: Send + Sync {
    /// Reads from a file up to its end; returns how many bytes. A file that is not there is empty.
    ///
    /// # Errors
    /// The disk's.
    fn read(&self, path: &str, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;

    /// Writes to a file, which is made with its folders if it is not there.
    ///
    /// # Errors
    /// The disk's; a part may be written.
    fn write(&self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts a file, if it is there and longer.
    ///
    /// # Errors
    /// The disk's.
    fn truncate(&self, path: &str, length: u64) -> io::Result<()>;

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// The disk's.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Puts a file and its name on stable storage.
    ///
    /// # Errors
    /// The disk's: what was written before may be lost.
    fn sync(&self, path: &str) -> io::Result<()>;

    /// The names in a folder, in any order; none if it is not there.
    ///
    /// # Errors
    /// The disk's.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// The bytes that a file takes on the disk, holes not counted; 0 if it is not there.
    ///
    /// # Errors
    /// The disk's.
    fn used(&self, path: &str) -> io::Result<u64>;

    /// The length of a file in bytes; 0 if it is not there.
    ///
    /// # Errors
    /// The disk's.
    fn length(&self, path: &str) -> io::Result<u64>;

    /// The bytes that are free on the disk.
    ///
    /// # Errors
    /// The disk's.
    fn free(&self) -> io::Result<u64>;
}

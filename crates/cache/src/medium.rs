//! The interface between the cache and its disk.

use std::io;

/// A folder with files, named by paths whose components are separated by `/`. Several threads may
/// call it at once.
///
/// Data is on stable storage only after [`Medium::sync`] of its file. Until then a crash may keep
/// any part of the written data, in any order.
pub trait Medium: Send + Sync {
    /// Reads up to the end of a file; returns the number of bytes. A missing file is empty.
    ///
    /// # Errors
    /// Those of the disk.
    fn read(&self, path: &str, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;

    /// Writes to a file; creates it with its folders if it does not exist.
    ///
    /// # Errors
    /// Those of the disk; part of the data may be written.
    fn write(&self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Truncates a file, if it exists and is longer.
    ///
    /// # Errors
    /// Those of the disk.
    fn truncate(&self, path: &str, length: u64) -> io::Result<()>;

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// Those of the disk.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Puts a file and its name on stable storage.
    ///
    /// # Errors
    /// Those of the disk: data written before may be lost.
    fn sync(&self, path: &str) -> io::Result<()>;

    /// The names in a folder, in any order; none if it does not exist.
    ///
    /// # Errors
    /// Those of the disk.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// The bytes that a file occupies on the disk, without holes; 0 if it does not exist.
    ///
    /// # Errors
    /// Those of the disk.
    fn used(&self, path: &str) -> io::Result<u64>;

    /// The length of a file in bytes; 0 if it does not exist.
    ///
    /// # Errors
    /// Those of the disk.
    fn length(&self, path: &str) -> io::Result<u64>;

    /// The free bytes of the disk.
    ///
    /// # Errors
    /// Those of the disk.
    fn free(&self) -> io::Result<u64>;
}

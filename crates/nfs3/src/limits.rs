//! Every bound of this crate, with its reason.

use comity_proto::nfs3::DATA_BYTES_MAX;

/// Most bytes of one READ or WRITE: what the Linux client asks for at most; beyond it the cost of a
/// call is nothing beside that of its bytes.
pub const TRANSFER_BYTES_MAX: u32 = DATA_BYTES_MAX;

/// From how many bytes on a READ may answer with a range of the file itself. Below it a copy out of
/// the page cache costs less than the system call more that `sendfile` needs: copied against sent,
/// 5.6 to 6.7 us at 16 KiB, 9.2 to 7.8 at 32 KiB, 36 to 19 at 128 KiB (loopback, November 2026).
pub const BY_REFERENCE_FROM_BYTES: u32 = 32 << 10;

/// Bytes that transfers should be a multiple of: the page size of nearly every client.
pub const TRANSFER_MULTIPLE_BYTES: u32 = 4096;

/// Most bytes of one page of a directory. About 1,500 entries with handles and attributes; a page
/// costs one system call an entry, and whoever asks for more would keep a worker for long.
pub const LISTING_BYTES_MAX: u32 = 256 << 10;

/// Bytes of a directory to ask for (FSINFO, dtpref): some 400 entries with attributes.
pub const LISTING_BYTES_PREFERRED: u32 = 64 << 10;

/// Most mounts that are kept for DUMP (MOUNT), of all clients together. It is a courtesy, and of no
/// consequence: at 1.3 KB a line the longest answer stays below 2 MB.
pub const MOUNTS_MAX: usize = 1024;

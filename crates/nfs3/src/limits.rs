//! Every bound of this crate, with its reason.

use comity_proto::nfs3::DATA_BYTES_MAX;

/// Most bytes of one READ or WRITE. The Linux client asks for no more; in a longer transfer the
/// cost of the call itself would be small beside that of its bytes.
pub const TRANSFER_BYTES_MAX: u32 = DATA_BYTES_MAX;

/// Least bytes of a READ that is answered with a range of the file itself. Below, a copy out of
/// the page cache costs less than the additional system call `sendfile`: copied against sent,
/// 5.6 to 6.7 us at 16 KiB, 9.2 to 7.8 at 32 KiB, 36 to 19 at 128 KiB (loopback, November
/// 2026).
pub const BY_REFERENCE_FROM_BYTES: u32 = 32 << 10;

/// Bytes that transfers should be a multiple of: the page size of nearly every client.
pub const TRANSFER_MULTIPLE_BYTES: u32 = 4096;

/// Most bytes of one page of a directory: about 1,500 entries with handles and attributes. A
/// page costs one system call an entry, so a longer page would keep a worker for long.
pub const LISTING_BYTES_MAX: u32 = 256 << 10;

/// Bytes of a directory to ask for (FSINFO, dtpref): some 400 entries with attributes.
pub const LISTING_BYTES_PREFERRED: u32 = 64 << 10;

/// Most mounts that are kept for DUMP (MOUNT), of all clients together. No other call depends
/// on them; at 1.3 KB a line the longest answer stays below 2 MB.
pub const MOUNTS_MAX: usize = 1024;

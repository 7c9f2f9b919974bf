//! Every bound of the memory backend, with its reason.

/// Bytes of one page, the unit of space and of holes; that of the kernel's page cache.
pub(super) const PAGE_BYTES: u64 = 4096;

/// Bytes charged for an entry of a directory, and for an object beside its data: names, map nodes
/// and attributes take memory too, so empty files must not be free.
pub(super) const ENTRY_BYTES: u64 = 128;

/// Default space in bytes: enough for tests and small tools, and little for any machine.
pub(super) const BYTES_MAX: u64 = 1 << 30;

/// Default number of objects: that of ext4 for a volume sixteen times as large as [`BYTES_MAX`].
pub(super) const NODES_MAX: u64 = 1 << 20;

/// Largest file by default in bytes: the largest signed offset, as in the kernel.
pub(super) const FILE_SIZE_MAX: u64 = i64::MAX as u64;

/// Most links to one object by default: what ext4 takes.
pub(super) const LINKS_MAX: u32 = 65_000;

/// Most bytes one copy moves at a time, so that no caller waits long for a file's lock.
pub(super) const COPY_BYTES_MAX: u32 = 1 << 20;

/// Entries that a listing copies from a directory at a time, so that no lock is held while they are
/// passed to the caller.
pub(super) const LISTING_ENTRIES_MAX: usize = 128;

/// Parts of the table of objects, each with a lock of its own: a few times the cores of a machine.
pub(super) const TABLE_SHARDS: usize = 64;

/// Attempts of a verb whose objects are removed before it has locked them. Each time another caller
/// has made progress, so that this many failures in a row do not happen by chance.
pub(super) const RETRIES_MAX: usize = 1_000;

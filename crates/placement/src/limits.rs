//! The bounds of a placement.

use std::time::Duration;

/// Most data servers of a placement: the handles of a layout must fit into one reply.
pub const DATA_SERVERS_MAX: usize = 64;

/// Most mirrors of a file: clients send every write to each of them.
pub const MIRRORS_MAX: usize = 4;

/// The number of mirrors of placements that set none.
pub const MIRRORS_USUAL: usize = 2;

/// Longest name of a data server in bytes: all names are in the extended attribute of each file.
pub const SERVER_NAME_BYTES_MAX: usize = 32;

/// Shortest stripe unit in bytes: clients need a multiple of their page size, up to 64 KiB.
pub const UNIT_BYTES_MIN: u32 = 64 << 10;

/// Longest stripe unit in bytes.
pub const UNIT_BYTES_MAX: u32 = 1 << 30;

/// The stripe unit of placements that set none, in bytes: the longest READ and WRITE.
pub const UNIT_BYTES_USUAL: u32 = 1 << 20;

/// Files whose place is remembered, and files whose used space is, about 200 bytes each.
pub(crate) const RECORDS_MAX: usize = 1 << 16;

/// Sets of data servers whose addresses clients can ask for, at most 2 KiB each. There is a new one
/// whenever the data servers of new files change.
pub(crate) const DEVICES_MAX: usize = 1 << 10;

/// Files on data servers whose handles are remembered, about 100 bytes each.
pub(crate) const DATA_HANDLES_MAX: usize = 1 << 17;

/// Files of which a broken mirror is remembered, about 200 bytes each.
pub(crate) const BROKEN_FILES_MAX: usize = 1 << 16;

/// Time after which a mirror that is shorter than another one lacks bytes: the client that wrote to
/// the other one writes to all within this time, or has died.
pub(crate) const MIRROR_LAG: Duration = Duration::from_millis(500);

/// Locks for changes of files. Two files may share one.
pub(crate) const FILE_LOCKS: usize = 256;

/// Locks for changes of the bytes of mirrored files. Two files may share one.
pub(crate) const MIRROR_LOCKS: usize = 1024;

/// Parts of the table of uses of files, each with a lock.
pub(crate) const HOLD_SHARDS: usize = 32;

/// Time for which the move of a file waits for uses of the file that are under way. A call to a
/// data server that does not answer ends sooner.
pub(crate) const MOVE_WAIT_MAX: Duration = Duration::from_secs(20);

/// Time for which a use of a file waits while the file is being placed. At most
/// [`SMALL_BYTES_MAX`] are copied then.
pub(crate) const PLACING_WAIT_MAX: Duration = Duration::from_secs(5);

/// Longest file that stays on the metadata server until it grows, in bytes: it is copied to data
/// servers within one call of a client.
pub(crate) const SMALL_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a file that are copied at once while it moves: the longest READ and WRITE.
pub(crate) const COPY_BYTES: u64 = 1 << 20;

/// Fences that a data server remembers, about 150 bytes each.
pub(crate) const FENCES_MAX: usize = 1 << 16;

/// Parts of the table of fences, each with a lock.
pub(crate) const FENCE_SHARDS: usize = 32;

/// Entries of a directory that are checked at once: about 300 bytes each in the answer.
pub(crate) const CHECK_ENTRIES_MAX: usize = 256;

/// Time after which a page of checked entries ends, so that other requests have their turn.
pub(crate) const CHECK_TIME_MAX: Duration = Duration::from_secs(1);

/// Bytes of mirrors that are compared at once: ranges that differ are found by blocks of this size.
pub(crate) const COMPARED_BYTES: usize = 4096;

/// Ranges that differ after which a comparison of mirrors stops, about 150 bytes each. A part of
/// [`COPY_BYTES`] adds at most 256.
pub(crate) const DIFFERING_MAX: usize = 64;

/// Names of data files that are listed at once, 32 bytes each.
pub(crate) const STORED_NAMES_MAX: usize = 4096;

/// Longest name of a placement in labels, in bytes. Labels and fences together must fit into the
/// 4 KiB that some file systems have for extended attributes of a file.
pub(crate) const PLACEMENT_NAME_BYTES_MAX: usize = 255;

/// Longest path in a label in bytes.
pub(crate) const PATH_BYTES_MAX: usize = 1023;

/// Files whose labels are due, about 160 bytes each. They are written each second.
pub(crate) const DUE_LABELS_MAX: usize = 1 << 16;

/// Entries of a directory that are searched for the name of a file that a label needs.
pub(crate) const ENTRIES_SEARCHED_MAX: usize = 1 << 16;

/// Data files that are compared with their files in one step of a rebuild.
pub(crate) const REBUILT_MAX: usize = 128;

/// Bytes of a file that are looked at at once, to find out whether it has bytes of its own.
pub(crate) const OWN_DATA_BYTES: u32 = 1 << 20;

/// Directories above a file that are looked at: a path of `PATH_MAX` bytes has no more.
pub(crate) const DEPTH_MAX: usize = 2048;

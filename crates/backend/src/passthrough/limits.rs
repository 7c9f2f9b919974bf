//! Every bound of this module, with its reason.

use std::time::Duration;

/// Descriptors reserved for logs and files that are being sent. Of the rest, connections may use
/// half, and the cache the other half.
pub(crate) const DESCRIPTORS_RESERVED: usize = 1_024;

/// The least number of cached descriptors with which the verbs still work well.
pub(crate) const DESCRIPTORS_LEAST: usize = 64;

/// Descriptors of a typical object in use: one for itself and one for its data.
pub(crate) const DESCRIPTORS_PER_OBJECT: usize = 2;

/// Most descriptors the cache takes by default: about half a gigabyte of pinned inodes.
pub(crate) const DESCRIPTORS_DEFAULT: usize = 262_144;

/// Descriptors that are closed at once when the process has none left.
pub(crate) const DESCRIPTORS_RELIEF: usize = 64;

/// Attempts to open an object. The pauses between them begin at a millisecond and double, and are
/// 127 ms in total: longer than a thread waits for a processor or a disk on a healthy machine.
pub(crate) const OPEN_ATTEMPTS_MAX: u32 = 10;

/// Attempts after which the thread only yields the processor.
pub(crate) const OPEN_YIELDS: u32 = 3;

/// Time within which a write and a commit count as quick succession.
pub(crate) const WRITER_TURN: Duration = Duration::from_secs(1);

/// Number of quick successions after which the descriptor for writing stays open: a database is
/// written like that, and a file that is to be executed is not.
pub(crate) const WRITER_TURNS: u32 = 3;

/// Shards of the descriptor cache: enough that two workers rarely meet at one.
pub(crate) const CACHE_SHARDS: usize = 64;

/// Size in bytes from which a file counts as large, and is checked for removal before others.
pub(crate) const LARGE_BYTES: u64 = 1 << 20;

/// Cached files that are checked for removal in a second. A check takes a microsecond, so that all
/// take about 3 % of a processor. A cache of so many files is checked each second, and the largest
/// one ([`DESCRIPTORS_DEFAULT`]) in at most eight seconds.
pub(crate) const SWEPT_MAX: usize = 32_768;

/// Large files among them, so that the others are checked, too.
pub(crate) const LARGE_SWEPT_MAX: usize = SWEPT_MAX / 2;

/// Files that are committed at once when the cache is full of files with unstable data: about a
/// tenth of a second on a spinning disk.
pub(crate) const COMMITS_AT_ONCE: usize = 8;

/// Most objects that are remembered when no more can be opened: 64 KiB. An object is opened if it
/// is looked up again before about this many others.
pub(crate) const GHOSTS_MAX: usize = 16_384;

/// Callers whose rights a node remembers: a file is rarely used by more at a time.
pub(crate) const CACHED_ACCESSES_PER_NODE: usize = 4;

/// Age at which a ctime is sure to differ from that of a later change: file systems stamp times
/// with a clock that ticks every 1 to 10 ms.
pub(crate) const TIME_GRAIN: Duration = Duration::from_millis(50);

/// The same for file systems with coarse times: ext3, and ext4 with small inodes, store whole
/// seconds, and FAT every second one.
pub(crate) const TIME_GRAIN_COARSE: Duration = Duration::from_millis(2_050);

/// Open listings kept for their next call, each with a descriptor and a buffer.
pub(crate) const CURSORS_MAX: usize = 64;

/// Room for one `getdents64` in bytes: about 800 entries, more than one reply takes.
pub(crate) const LISTING_BYTES: usize = 32_768;

/// Most entries of a directory that is remembered whole: reading them takes about 3 ms.
pub(crate) const SNAPSHOT_ENTRIES_MAX: usize = 16_384;

/// Entries of a remembered directory that are checked together, between two checks of the
/// directory. More entries at a time cost less, but the last ones may be checked in vain.
pub(crate) const SNAPSHOT_STEP: usize = 16;

/// The closed objects of a remembered directory are forgotten once one in this many of its entries
/// has one: such an entry costs as much as its whole step.
pub(crate) const SNAPSHOT_WORN_PART: usize = 64;

/// Entries of all remembered directories together: about 80 MiB.
pub(crate) const SNAPSHOTS_ENTRIES_MAX: usize = 524_288;

/// Deepest tree that is walked upward: `PATH_MAX` allows no deeper path.
pub(crate) const DEPTH_MAX: usize = 4_096;

/// Places that are remembered where objects cannot be opened by handle: about 64 MiB.
pub(crate) const PATHS_MAX: usize = 262_144;

/// Most entries that one search of the tree visits: about two seconds.
pub(crate) const SEARCH_ENTRIES_MAX: usize = 2_000_000;

/// Part of all time that searches may take: one in ten.
pub(crate) const SEARCH_SHARE: u32 = 10;

/// Shortest time between two reads of the table of mounts.
pub(crate) const MOUNTS_INTERVAL: Duration = Duration::from_secs(1);

/// Length from which truncating or removing a file may take long: freeing its blocks reads their
/// index.
pub(crate) const TRUNCATE_BYTES_SLOW: u64 = 1 << 30;

/// Entries that a listing reads before it passes its event loop to another thread: up to 10 ms, and
/// more than a page with attributes has.
pub(crate) const LISTED_INLINE_MAX: usize = 2_048;

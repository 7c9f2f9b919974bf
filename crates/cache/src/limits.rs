//! The bounds of this crate.

/// Bytes of a page, the unit in which files are cached and checked: the kernel's page size.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Most bytes in one READ or WRITE to the file system below: the most that one call of NFS carries.
pub(crate) const TRANSFER_BYTES_MAX: u64 = 1 << 20;

/// Most objects whose attributes are remembered: about 250 bytes each, 16 MiB together.
pub(crate) const ATTRIBUTES_MAX: usize = 65_536;

/// Most names whose objects are remembered: about 200 bytes each.
pub(crate) const NAMES_MAX: usize = 65_536;

/// Most entries in all cached listings together: about 120 bytes each, 30 MiB together.
pub(crate) const LISTED_MAX: usize = 262_144;

/// Most entries of one cached listing. A longer one is fetched each time.
pub(crate) const LISTED_OF_ONE_MAX: usize = 16_384;

/// Most entries that are read at once of a directory without a delegation: a caller that wants only
/// the first ones waits for them.
pub(crate) const LISTED_UNDELEGATED_MAX: usize = 2_048;

/// Time in milliseconds for which the listing of a directory without a delegation shows that a name
/// is missing. Names that were looked up stay missing for longer.
pub(crate) const UNLISTED_TIME_MAX: u64 = 1_000;

/// Most volumes for which the cache remembers whether they compare names byte by byte.
pub(crate) const VOLUMES_MAX: usize = 1_024;

/// Most directories whose last read is remembered: about 100 bytes each.
pub(crate) const LOOKS_MAX: usize = 16_384;

/// Time in milliseconds within which a second read of a directory makes the cache request its
/// delegation. The servers of this project use the same time.
pub(crate) const LOOKS_WITHIN: u64 = 60_000;

/// First pause in milliseconds after a delegation of a directory was refused. It doubles. The
/// servers of this project count requests within 100 ms as one, and grant at the second: a request
/// after this pause is the second one.
pub(crate) const REFUSED_FIRST: u64 = 100;

/// Longest pause in milliseconds after a delegation of a directory was refused.
pub(crate) const REFUSED_MAX: u64 = 60_000;

/// Most results of access checks that are remembered: about 100 bytes each.
pub(crate) const VERDICTS_MAX: usize = 65_536;

/// Most files whose headers are kept in memory: about 300 bytes each.
pub(crate) const OBJECTS_MAX: usize = 16_384;

/// Most files of the cache disk that are kept open.
pub(crate) const DESCRIPTORS_MAX: usize = 256;

/// Attempts to read pages of one version from a file that other clients keep changing, before the
/// data is passed on without being cached.
pub(crate) const READ_TRIES: usize = 3;

/// Consecutive failures of the cache disk after which it is not used any longer.
pub(crate) const FAILURES_MAX: u32 = 8;

/// Most bytes of unsent data in memory. Above it, writers wait until data is sent.
pub(crate) const DIRTY_BYTES_MAX: u64 = 64 << 20;

/// Age in milliseconds at which unsent data is sent. Linux keeps dirty pages longer by default
/// (`dirty_expire_centisecs` is 30 s).
pub(crate) const DIRTY_AGE_MAX: u64 = 5_000;

/// Most bytes of the journal. Beyond it, writes go through to the server.
pub(crate) const JOURNAL_BYTES_MAX: u64 = 1 << 30;

/// Most bytes after the header of one record of the journal.
pub(crate) const RECORD_BYTES_MAX: u64 = 16 << 20;

/// Accuracy in seconds of the time of last use: it is written again when it is older.
pub(crate) const USE_GRAIN_SECONDS: u64 = 3_600;

/// Most partly cached files that the filler remembers.
pub(crate) const FILLS_MAX: usize = 1_024;

/// Largest file that the filler completes: programs often need only a part of a larger one.
pub(crate) const FILL_BYTES_MAX: u64 = 1 << 30;

/// Time in milliseconds without reads by programs before the filler may read.
pub(crate) const QUIET_TIME: u64 = 2_000;

/// The cleaner frees an extra part of the cache: one twentieth.
pub(crate) const CLEANER_MARGIN: u64 = 20;

/// Pause in milliseconds between two rounds of the cleaner.
pub(crate) const CLEANER_PAUSE: u64 = 600_000;

/// Most files in one step of the cleaner: a step takes some milliseconds.
pub(crate) const CLEANER_STEP: usize = 512;

/// Most callers for whom one name is remembered: those that use a directory at the same time.
pub(crate) const CALLERS_OF_A_NAME_MAX: usize = 8;

/// Most targets of symbolic links that are remembered.
pub(crate) const LINKS_MAX: usize = 16_384;

/// Entries of a map that are read at once in a search for missing pages: 32 KiB.
pub(crate) const TABLE_STEP: u64 = 4_096;

/// Pages or files after which a step of the verification ends: 32 MiB take less than a second.
pub(crate) const VERIFY_PAGES: u64 = 8_192;

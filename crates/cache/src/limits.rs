//! The bounds of this crate.

/// Bytes of a page: the unit in which files are cached and checked, and the kernel's own.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Most bytes read from below or written to it in one call: what one call of NFS carries at most.
pub(crate) const TRANSFER_BYTES_MAX: u64 = 1 << 20;

/// Most objects whose attributes are remembered: about 250 bytes each, 16 MiB together.
pub(crate) const ATTRIBUTES_MAX: usize = 65_536;

/// Most names that are remembered, with what they stand for: about 200 bytes each.
pub(crate) const NAMES_MAX: usize = 65_536;

/// Most entries of listings that are remembered together: about 120 bytes each, 30 MiB together.
pub(crate) const LISTED_MAX: usize = 262_144;

/// Most entries of a listing that is remembered. Longer ones are asked for each time.
pub(crate) const LISTED_OF_ONE_MAX: usize = 16_384;

/// Directories for which it is remembered when programs looked into them: about 100 bytes each.
pub(crate) const LOOKS_MAX: usize = 16_384;

/// Time in milliseconds within which two looks into a directory make its delegation worth a call:
/// the servers of this project think so, too.
pub(crate) const LOOKS_WITHIN: u64 = 60_000;

/// First pause in milliseconds after a delegation of a directory was refused. It doubles. Servers
/// of this project count all requests within 100 ms as one, and grant the second.
pub(crate) const REFUSED_FIRST: u64 = 200;

/// Longest pause in milliseconds after a delegation of a directory was refused.
pub(crate) const REFUSED_MAX: u64 = 60_000;

/// Most verdicts about callers' rights that are remembered: about 100 bytes each.
pub(crate) const VERDICTS_MAX: usize = 65_536;

/// Most files whose headers are kept in memory: about 300 bytes each.
pub(crate) const OBJECTS_MAX: usize = 16_384;

/// Most files of the cache disk that are kept open.
pub(crate) const DESCRIPTORS_MAX: usize = 256;

/// Tries to read pages of one change attribute from a file that others change all the time, before
/// the pages read last are passed on without being cached.
pub(crate) const READ_TRIES: usize = 3;

/// Failures of the cache disk in a row after which it is not used any longer.
pub(crate) const FAILURES_MAX: u32 = 8;

/// Most bytes of one file that wait to be written to the server in memory, and of all together.
/// Writers wait beyond it.
pub(crate) const DIRTY_BYTES_MAX: u64 = 64 << 20;

/// Age in milliseconds at which data that waits is written to the server: what Linux takes by
/// default for its page cache (`dirty_expire_centisecs` is 30 s; NFS writes earlier).
pub(crate) const DIRTY_AGE_MAX: u64 = 5_000;

/// Most bytes of the journal; data beyond it is written to the server before the program is
/// answered.
pub(crate) const JOURNAL_BYTES_MAX: u64 = 1 << 30;

/// Longest handle and data of one record of the journal: one write of a program.
pub(crate) const RECORD_BYTES_MAX: u64 = 16 << 20;

/// Age in seconds at which the time of the last use is written again.
pub(crate) const USE_GRAIN_SECONDS: u64 = 3_600;

/// Most files that are remembered as partial, for the filler.
pub(crate) const FILLS_MAX: usize = 1_024;

/// Longest file that the filler completes: of a larger one programs often want a part only.
pub(crate) const FILL_BYTES_MAX: u64 = 1 << 30;

/// Time in milliseconds without reads of programs after which the line is quiet.
pub(crate) const QUIET_TIME: u64 = 2_000;

/// Part of the cache that is freed beyond what must be: a twentieth.
pub(crate) const CLEANER_MARGIN: u64 = 20;

/// Pause in milliseconds between two rounds of the cleaner.
pub(crate) const CLEANER_PAUSE: u64 = 600_000;

/// Most files that one step of the cleaner looks at: a step takes some milliseconds.
pub(crate) const CLEANER_STEP: usize = 512;

/// Most callers for whom one name is remembered: those who share a directory at a time.
pub(crate) const CALLERS_OF_A_NAME_MAX: usize = 8;

/// Most targets of symbolic links that are remembered.
pub(crate) const LINKS_MAX: usize = 16_384;

/// Pages whose checksums are read at once when a file is searched for gaps: 32 KiB of a map.
pub(crate) const TABLE_STEP: u64 = 4_096;

/// Pages, or files, after which a step of a look at all pages ends: 32 MiB, less than a second.
pub(crate) const VERIFY_PAGES: u64 = 8_192;

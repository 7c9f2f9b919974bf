//! The options of a cache.

use std::sync::Arc;

/// A clock: milliseconds since 1970. If it is set back, cached state stays valid for longer.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// When a write is answered (`dc_write`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteMode {
    /// When the file system below has the data.
    Through,
    /// When the data is in memory, as Linux does it.
    #[default]
    Memory,
    /// When the data is in the journal on the cache disk, on stable storage.
    Journal,
}

/// Times in milliseconds for which attributes are valid without a delegation, as in nfs(5): the
/// time doubles from the minimum to the maximum while they do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeTimes {
    /// Minimum and maximum for files (`acregmin`, `acregmax`).
    pub file: (u64, u64),
    /// Minimum and maximum for directories (`acdirmin`, `acdirmax`).
    pub dir: (u64, u64),
}

impl Default for AttributeTimes {
    fn default() -> Self {
        Self { file: (3_000, 60_000), dir: (30_000, 60_000) }
    }
}

impl AttributeTimes {
    /// Attributes are fetched for each use (`noac`).
    pub const NONE: Self = Self { file: (0, 0), dir: (0, 0) };
}

/// The options of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// When writes are answered.
    pub write: WriteMode,
    /// The times for which attributes are valid.
    pub times: AttributeTimes,
    /// True if fetched pages are stored on the cache disk; with false (`nodc_read`) only pages that
    /// are already there are used.
    pub fills: bool,
    /// Most bytes on the cache disk (`dc_max_size`); `u64::MAX` for no limit.
    pub bytes_max: u64,
    /// Free bytes that must stay on the cache disk (`dc_min_free`).
    pub free_min: u64,
    /// True if cached state is used while the file system below cannot be reached
    /// (`dc_offline=ro`).
    pub offline: bool,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            write: WriteMode::default(),
            times: AttributeTimes::default(),
            fills: true,
            bytes_max: u64::MAX,
            free_min: 1 << 30,
            offline: false,
        }
    }
}

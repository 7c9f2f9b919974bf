//! The choices that a cache leaves to its user.

use std::sync::Arc;

/// A clock: milliseconds since 1970. It should not go back; where it does, what is known is taken
/// for true for longer.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The moment at which a write of a program is answered (`dc_write`).
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

/// Times in milliseconds for which attributes are taken for true without a delegation, as in
/// nfs(5): the time doubles from the least to the most while they do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeTimes {
    /// Least and most for files (`acregmin`, `acregmax`).
    pub file: (u64, u64),
    /// Least and most for directories (`acdirmin`, `acdirmax`).
    pub dir: (u64, u64),
}

impl Default for AttributeTimes {
    fn default() -> Self {
        Self { file: (3_000, 60_000), dir: (30_000, 60_000) }
    }
}

impl AttributeTimes {
    /// No time at all (`noac`).
    pub const NONE: Self = Self { file: (0, 0), dir: (0, 0) };
}

/// The choices of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// The moment at which writes are answered.
    pub write: WriteMode,
    /// The times for which attributes are taken for true.
    pub times: AttributeTimes,
    /// True if pages are read from the cache disk and none are added (`nodc_read`: `false`).
    pub fills: bool,
    /// Most bytes on the cache disk (`dc_max_size`); `u64::MAX` for no bound.
    pub bytes_max: u64,
    /// Bytes of the cache disk that are left free (`dc_min_free`).
    pub free_min: u64,
    /// True if what is known is served while the file system below cannot be reached
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

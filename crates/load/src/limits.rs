//! Bounds, with their reasons.

/// Most disks, and most network interfaces, that are sampled. A machine that lists more of them has
/// devices that a server does not use, such as those of containers.
pub(crate) const DEVICES_MAX: usize = 64;

/// Most threads of the server whose times are read: more than it starts.
pub(crate) const THREADS_MAX: usize = 4096;

/// Most keys (clients or exports) of which shares are kept: as many connections as a server has.
pub(crate) const SHARES_MAX: usize = 16_384;

/// The queue formula is used with at most this ratio, because it has no bound at 1.
pub(crate) const QUEUE_RATIO_MAX: f64 = 0.95;

/// A resource at this average over a minute is a bottleneck: by the formula of a simple queue
/// (M/M/1, 1 / (1 - load)), calls take more than three times as long as on an idle server.
pub(crate) const BUSY: f64 = 0.7;

/// Some calls have to get shorter by this part for a move to be advised: two servers that are
/// equally busy differ by nearly as much from minute to minute.
pub(crate) const GAIN_LEAST: f64 = 0.25;

/// All calls together have to get shorter by this part: less is decided by rounding.
pub(crate) const GAIN_OF_ALL_LEAST: f64 = 1e-6;

/// Clients that make a smaller part of the calls are few.
pub(crate) const FEW_CALLS: f64 = 0.01;

/// If tasks wait for storage for this part of the time, it may be storage that makes calls slow.
pub(crate) const STALLED: f64 = 0.2;

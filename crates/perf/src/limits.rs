//! Every bound of this crate, with its reason.

/// Longest time until the load of a server is on its metrics page, in seconds.
pub const LOAD_SECONDS_MAX: u64 = 5;

/// Longest time until all strangers are connected, in seconds.
pub const STRANGERS_START_SECONDS_MAX: u64 = 30;

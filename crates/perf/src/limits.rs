//! Every bound of this crate, with its reason.

/// Longest that the load of a server may take until it is on its metrics page, in seconds.
pub const LOAD_SECONDS_MAX: u64 = 5;

/// Longest that strangers may take until all of them are connected, in seconds.
pub const STRANGERS_START_SECONDS_MAX: u64 = 30;

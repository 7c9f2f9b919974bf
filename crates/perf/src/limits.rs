//! Every bound of this crate, with its reason.

/// Longest that strangers may take until all of them are connected, in seconds.
pub const STRANGERS_START_SECONDS_MAX: u64 = 30;

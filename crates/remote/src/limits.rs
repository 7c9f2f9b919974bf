//! Every bound of this crate, with its reason.

/// Largest reply that is expected, in bytes: a READ of 1 MiB and its header.
pub const REPLY_BYTES_MAX: usize = (1 << 20) + 4096;

/// Longest a server may stay silent, in seconds, before it is given up.
pub const SILENCE_SECONDS_MAX: u32 = 20;

//! Every bound of this crate, with its reason.

pub use comity_remote::limits::{REPLY_BYTES_MAX, SILENCE_SECONDS_MAX};

/// Most calls outstanding on one connection: a slot number fits in the low half of an xid.
pub const DEPTH_MAX: usize = 1 << 16;

/// Room for replies on one connection in bytes: two of the largest, so that an incomplete one is
/// rarely moved.
pub const INBOX_BYTES: usize = 2 * REPLY_BYTES_MAX;

/// Larger payloads are sent from their buffer, smaller ones are copied after their call; in bytes.
pub const PAYLOAD_COPIED_MAX: usize = 16 * 1024;

/// Most pieces in one send.
pub const PIECES_MAX: usize = 64;

/// Longest a server may take to start, in seconds; ganesha takes two to five.
pub const START_SECONDS_MAX: u64 = 20;

/// Most events of a trace of directories: 10 million take about 1 GiB.
pub const TRACE_EVENTS_MAX: usize = 10_000_000;

/// Most changes of a directory in one CB_NOTIFY; with more the directory is recalled. Linux has
/// room for a page of them.
pub const NOTIFICATIONS_PER_CALL_MAX: usize = 64;

//! Calls in flight over the connections to one server: a state machine without sockets or clocks.
//!
//! A call has an xid, and goes out over one connection at a time. It is sent again with the same
//! xid only after its connection has ended (RFC 8881, 2.9.2), never over the same connection. A
//! connection is closed if calls have waited on it for `silence_max` without a record from the
//! server.

mod link;
mod table;

pub(crate) use link::{CallBytes, LinkAction, LinkPlace};
pub(crate) use table::{Heard, OutstandingCalls, Sending};

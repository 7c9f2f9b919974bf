//! OutstandingCalls in flight over the connections to one server: pure, without sockets and clocks.
//!
//! A call has an xid, and goes out over one connection at a time. It is sent again, with the same
//! xid, only when its connection has ended (RFC 8881, 2.9.2): never over the same one. A connection
//! over which calls wait and nothing is heard for long is given up.

mod link;
mod table;

pub(crate) use link::{CallBytes, LinkAction, LinkPlace};
pub(crate) use table::{Heard, OutstandingCalls, Sending};

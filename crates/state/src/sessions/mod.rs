//! Operations on sessions (RFC 8881, 2.10): they are created, bound to connections, used, asked for
//! slots, and destroyed.

mod connection;
mod create;
mod recall;
mod sequence;

pub use create::CreateSession;
pub use sequence::{Sequenced, Ticket};

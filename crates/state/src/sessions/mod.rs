//! Operations on sessions (RFC 8881, 2.10): made, bound to connections, used, shrunk, destroyed.

mod connection;
mod create;
mod recall;
mod sequence;

pub use create::CreateSession;
pub use sequence::{Sequenced, Ticket};

//! Operations on clients: introduction, renewal of leases, and eviction.

mod destroy;
mod eviction;
mod exchange_id;
mod lease;
mod setclientid;

pub use exchange_id::{ExchangeId, Exchanged};
pub use setclientid::{Introduced, Setclientid};

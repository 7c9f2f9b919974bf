//! Operations on clients: they introduce themselves, renew their leases, and are forgotten.

mod destroy;
mod eviction;
mod exchange_id;
mod lease;
mod setclientid;

pub use exchange_id::{ExchangeId, Exchanged};
pub use setclientid::{Introduced, Setclientid};

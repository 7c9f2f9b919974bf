//! Written data that a restart of the server may lose: it is kept until a COMMIT confirms it, and
//! is written again if the write verifier shows that it was lost (RFC 1813, 4.8; RFC 8881,
//! 18.32.4).

mod committing;
mod copies;
mod file_writes;
mod kept_ranges;
mod writes;

pub(crate) use kept_ranges::KeptData;
pub(crate) use writes::{CommitTurn, UnstableWrites};

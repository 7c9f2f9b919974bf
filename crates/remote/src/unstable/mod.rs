//! Data that was written but may be lost if the server restarts: it is kept until the server says
//! that it is stable, and is written again if the server's write verifier says that it was lost
//! (RFC 1813, 4.8; RFC 8881, 18.32.4).

mod committing;
mod kept_ranges;
mod writes;

pub(crate) use committing::until_answered;
pub(crate) use kept_ranges::KeptData;
pub(crate) use writes::UnstableWrites;

//! Calls to clients: what the engine wants said, on which line, and what came of it.
//!
//! Nothing here waits. What cannot be said at the moment is tried again as time passes, until the
//! engine gives up on the client.

mod address;
mod answer;
mod call;
mod callbacks;
mod route;

pub(crate) use address::believed;
pub use callbacks::{Callbacks, Dial, Dialed, Others};

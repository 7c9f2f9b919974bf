//! Callbacks: the engine's messages to clients, the connections that carry them, and their results.
//!
//! No function here waits. A call that cannot be sent now is sent again later, until the engine
//! revokes the state in question.

mod address;
mod answer;
mod call;
mod callbacks;
mod layout_recall;
pub(crate) mod notify;
mod route;

pub(crate) use address::believed;
pub use callbacks::{Callbacks, Dial, Dialed, Others};

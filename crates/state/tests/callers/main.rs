//! State belongs to a principal and to the address of its client. These tests check what other
//! callers can do with names, clientids, sessions and stateids that they know or guess.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod clientids;
mod export_grace;
mod grace;
mod io;
mod layouts;
mod lock_states;
mod names;
mod people;
mod revoked;
mod room;
mod sessions;
mod stateids;

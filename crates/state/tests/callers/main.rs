//! State belongs to a principal and to where its client is: what callers who are not those can do
//! with names, clientids, sessions and stateids that they know or guess.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod clientids;
mod grace;
mod io;
mod lock_states;
mod names;
mod people;
mod room;
mod sessions;
mod stateids;

//! A world for tests: clients as machines, a server of this project, and a network in between that
//! loses connections. Time passes as the world says; what happens is decided by a seed.

mod requests;
mod server;
mod tests;
mod world;

pub(super) use requests::*;
pub(super) use server::ServerSettings;
pub(super) use world::{Faults, World};

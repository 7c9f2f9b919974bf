//! A simulation for tests: client machines, a server of this project, and a network that loses
//! connections. Time is simulated, and a seed determines all random choices.

mod requests;
mod server;
mod tests;
mod world;

pub(super) use requests::*;
pub(super) use server::ServerSettings;
pub(super) use world::{Faults, World};

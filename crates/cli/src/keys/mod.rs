//! The commands of keys and grants.

pub(crate) mod account;
pub(crate) mod grant;
pub(crate) mod id;
pub(crate) mod key;
mod key_choice;
mod known_servers;
mod listed;
pub(crate) mod server;
pub(crate) mod submit;

pub(crate) use key_choice::public_key;
pub(crate) use known_servers::KnownServers;

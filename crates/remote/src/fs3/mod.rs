//! A file system of a server by NFS 3: each verb is one call, or two where the server leaves out
//! what version 3 lets it leave out.

mod attributes;
mod data;
mod file_system;
mod listing;
mod lock_calls;
mod locks;
mod mount;
mod names;
mod objects;
mod opens;
mod remote3;
mod space;
mod status;
mod undone_locks;

pub(crate) use mount::{Settings3, mount};

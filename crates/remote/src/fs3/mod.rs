//! A file system of a server by NFS 3: each verb is one call, or two if the server omits an
//! optional part of a reply.

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

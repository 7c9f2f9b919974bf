//! A file system of a server by NFS 4.1 and 4.2: each verb is one COMPOUND.

mod attributes;
mod change;
mod data;
mod directories;
mod extended;
mod file_system;
mod listing;
mod mount;
mod names;
mod objects;
mod opens;
mod remote4;
mod space;
mod status;

pub(crate) use mount::{Settings4, mount};

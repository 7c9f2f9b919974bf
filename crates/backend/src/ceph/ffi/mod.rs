//! libcephfs, loaded at run time: the calls of its low-level interface that the backend uses, and
//! all `unsafe` that they need.
#![allow(unsafe_code)]

mod api;
mod delegation;
mod file;
mod inode;
mod mount;

pub(super) use api::{
    Result, SET_ATIME, SET_GID, SET_MODE, SET_MTIME, SET_SIZE, SET_UID, Statx, Vino,
};
pub(super) use delegation::ReadDelegation;
pub(super) use file::{CephFile, ListedEntry, Listing, PosixLock};
pub(super) use inode::{CephInode, FoundInode};
pub(super) use mount::{CephMount, MountSource, Perms};

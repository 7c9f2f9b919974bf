//! Any [`comity_vfs::Fs`] as a FUSE mount of this machine.
//!
//! **Answers:** how the requests of the Linux kernel become verbs of an `Fs` ([`FuseMount`]), how
//! long the kernel may cache the answers ([`Keep`]), and why a directory cannot be mounted on
//! ([`MountError`]).
//!
//! **May not know:** which `Fs` it is, protocols, servers, command lines.
//!
//! Only the module `transport` uses the crate `fuser`, which implements the kernel's protocol.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod callers;
mod errno;
mod inodes;
mod interrupts;
mod invalidation;
mod limits;
mod lower;
mod mount;
mod mount_error;
mod mounted;
mod opens;
mod process;
mod transport;

pub use lower::{Keep, Lower, Plain};
pub use mount::{FuseMount, Options, check_directory, is_mount_point, unmount};
pub use mount_error::MountError;

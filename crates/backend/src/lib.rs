//! Implementations of `Fs`.
//!
//! **Answers:** how the verbs of [`comity_vfs::Fs`] are done on a local directory
//! ([`Passthrough`]), on a Ceph file system ([`Ceph`]) and in memory ([`Memory`]), and which of
//! them opens the source that an export names ([`Registry`]).
//!
//! **May not know:** protocols, exports, callers' addresses.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

mod blocking;
mod ceph;
mod close;
mod default_modes;
mod errno;
mod fanotify_groups;
mod fanotify_watch;
mod lease_watch;
mod memory;
mod passthrough;
mod posix_acl;
pub mod range_lock;
mod registry;
mod sync_errors;
mod sys;
mod verifier;
mod zero_name;

pub use blocking::{BlockingHook, blocking, install_blocking_hook};
pub use ceph::{Ceph, CephOptions, CephSiblings};
pub use close::close;
pub use lease_watch::{LeaseListener, LeaseWatch, lease_break_time};
pub use memory::{Memory, MemoryOptions};
pub use passthrough::{
    Capabilities, Descriptors, OpenError, Passthrough, PassthroughOptions, Siblings, handle_of,
};
pub use registry::{CEPH, DIRECTORY, Location, MEMORY, OpenRequest, Registry};

/// Asks the kernel for its handle of `name` in `dir`; returns the handle's length in bytes.
/// Measurements use it as the minimum cost of a persistent handle.
///
/// # Errors
/// The kernel's error.
pub fn kernel_handle_bytes(dir: BorrowedFd<'_>, name: &CStr) -> Result<usize, Errno> {
    sys::name_to_handle(dir, name, sys::HandleUse::Open).map(|(handle, _)| handle.length())
}

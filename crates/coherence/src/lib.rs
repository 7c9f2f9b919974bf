//! Coherence: delegations, deny modes and reclaims of other clients are checked before a file is
//! read or changed.
//!
//! **Answers:** whether an operation may go on, or has to wait for the recall of a delegation, a
//! deny mode or a reclaim; which attributes are the newest. Every verb of a [`View`] that changes
//! something takes a [`Clearance`] or a [`DirectoryClearance`], and only this crate makes them.
//!
//! **May not know:** procedures, operations and status numbers of any protocol; sockets, threads.
//!
//! [`View`]: comity_export::View
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod act;
mod asker;
mod broken;
mod changes;
mod clock;
mod holders;
mod host;
mod names;
mod newest;
mod rights;
mod wait_for_clients;

use std::time::Duration;

use comity_state::JournalPosition;

pub use act::Act;
pub use asker::{Asker, Checked, Refused, check_io};
pub use broken::broken_promise;
pub use clock::Clock;
pub use comity_export::{Clearance, DirectoryClearance};
pub use holders::Changer;
pub use host::{HostCall, Hosts, host_name};
pub use names::ChangesDirectories;
pub use newest::Newest;
pub use wait_for_clients::WaitForClients;

/// Sends pending calls to clients and waits for a moment, while other threads serve the connections
/// of this one; returns false if it cannot wait.
pub type Pause = dyn Fn(Duration) -> bool + Send + Sync;

/// Waits until all records of the engine up to the position are on stable storage; returns `false`
/// if that failed.
pub type Settle = dyn Fn(JournalPosition) -> bool + Send + Sync;

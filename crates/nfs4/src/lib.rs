//! NFSv4: 4.0 (RFC 7530), 4.1 (RFC 8881) and 4.2 (RFC 7862), operation by operation, over a view.
//!
//! **Answers:** which results a COMPOUND gets, and behind which barriers its reply has to wait
//! before it may be said. [`Nfs4`] streams a COMPOUND through a table of operations (`ops`), one
//! file each, which 4.0, 4.1 and 4.2 share; what comes first in a COMPOUND is the business of the
//! front desks (`desk`), one for 4.0 and one for the others.
//!
//! **May not know:** sockets and threads, which backend a file system is, how ids look on disk, how
//! an export's rules came about.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod attributes;
mod callback;
mod clock;
mod compound;
mod copying;
mod desk;
pub mod limits;
mod listing;
mod memory;
mod name;
mod object;
mod ops;
mod program;
mod promise;
mod repeated;
mod stateid;
mod status;
mod stream;
mod table;
mod tally;
mod transfer;
mod turn;
mod undo;
mod walk;

pub use callback::{Callbacks, Dial, Dialed, Others};
pub use clock::Clock;
pub use copying::{Copier, Copying, Progress};
pub use memory::{Memory, Pause, Settle};
pub use program::{Nfs4, Versions};
pub use status::nfsstat4;
pub use tally::{Counted, Tally};

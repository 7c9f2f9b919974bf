//! NFSv4: 4.0 (RFC 7530), 4.1 (RFC 8881) and 4.2 (RFC 7862), operation by operation, over a view.
//!
//! **Answers:** which results a COMPOUND gets, and behind which barriers its reply has to wait
//! before it may be said. [`Nfs4`] streams a COMPOUND through a table of operations (`ops`), one
//! file each, which 4.0, 4.1 and 4.2 share; what comes first in a COMPOUND is the business of the
//! front desks (`sequencing`), one for 4.0 and one for the others.
//!
//! **May not know:** sockets and threads, which backend a file system is, how ids look on disk, how
//! an export's rules came about.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod async_copy;
mod attributes;
mod callback;
mod compound;
mod copy_common;
mod deferred_reply;
mod dispatch;
mod execute;
mod filehandle;
pub mod limits;
mod listing;
mod lookup;
mod name;
mod ops;
mod owner_seqid;
mod program;
mod repeated;
mod sequencing;
mod state_context;
mod stateid;
mod status;
mod stop;
mod table;
mod tally;
mod traits;
mod undo;

pub use async_copy::{Copier, Copying, Progress};
pub use callback::{Callbacks, Dial, Dialed, Others};
pub use comity_coherence::{Clock, Settle};
pub use program::{Nfs4, Versions};
pub use state_context::{Memory, Sleep};
pub use status::nfsstat4;
pub use tally::{Counted, Tally};

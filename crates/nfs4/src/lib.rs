//! NFSv4: 4.0 (RFC 7530), 4.1 (RFC 8881) and 4.2 (RFC 7862), operation by operation, over a view.
//!
//! **Answers:** the results of a COMPOUND, and the barriers that its reply must wait for. [`Nfs4`]
//! executes a COMPOUND through a table of operations (`ops`), with one file for each, which 4.0,
//! 4.1 and 4.2 share. The rules about the first operation of a COMPOUND are in `sequencing`.
//!
//! **May not know:** sockets and threads, the kind of backend, ids on disk, the sources of an
//! export's rules.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod async_copy;
mod attribute_values;
mod attributes;
mod callback;
mod compound;
mod copy_common;
mod deferred_reply;
mod dispatch;
mod execute;
mod filehandle;
mod layout_kind;
pub mod limits;
mod listing;
mod lookup;
mod name;
mod operation_counters;
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
mod traits;
mod undo;

pub use async_copy::{Copier, Copying, Progress};
pub use callback::{Callbacks, Dial, Dialed, Others};
pub use comity_coherence::{Clock, Settle};
pub use operation_counters::{Counted, OperationCounters};
pub use program::{Nfs4, Versions};
pub use state_context::{Memory, ServerIdentity, Sleep};
pub use status::nfsstat4;

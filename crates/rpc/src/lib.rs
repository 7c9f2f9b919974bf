//! ONC RPC version 2 (RFC 5531): record marking, messages, dispatch, replay cache.
//!
//! **Answers:** where the records in a stream of bytes are, which call a record contains, which
//! program answers it to which peers, and how the answer is framed. A program is a [`Program`];
//! metrics and tracing are programs around programs.
//!
//! **May not know:** sockets, threads, clocks, the purpose of any program, the meaning of
//! credentials.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod auth;
mod backchannel;
mod dispatch;
mod gate;
pub mod limits;
mod message;
mod network;
mod program;
mod record;
mod replay;
mod reply;

pub use auth::{AuthStat, AuthSys, FilledVerifier, Flavor, OpaqueAuth, ReplyVerifier};
pub use backchannel::{Backchannel, SendError};
pub use dispatch::{Answered, Dispatcher, Hangup, Late};
pub use gate::{Admission, Gate, GateRefusal, OpenGate};
pub use message::{Call, CallHeader, Unparsed};
pub use network::network_of;
pub use program::{Deferred, Done, Layer, Outcome, Program, Repeat};
pub use record::{RecordError, RecordLimits, Scan, next_record};
pub use replay::{ReplayCache, ReplayKey, Ticket, Verdict};
pub use reply::{accepted, denied};

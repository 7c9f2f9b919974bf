//! ONC RPC version 2 (RFC 5531): record marking, messages, dispatch, replay cache.
//!
//! **Answers:** which records a stream of bytes holds, which call a record is, which program
//! answers it to which peers, and how the answer is framed. A program is a [`Program`]; metrics and
//! tracing are programs around programs.
//!
//! **May not know:** sockets, threads, clocks, what any program does, what a credential means.
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
pub use gate::{Admission, Gate, OpenGate};
pub use message::{Call, CallHeader, Unparsed};
pub use network::network_of;
pub use program::{Deferred, Done, Layer, Outcome, Program, Repeat};
pub use record::{RecordError, RecordLimits, Scan, next_record};
pub use replay::{ReplayCache, ReplayKey, Ticket, Verdict};
pub use reply::{accepted, denied};

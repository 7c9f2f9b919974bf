//! What a server of NFSv4 (and of NLM) must remember, as plain data.
//!
//! **Answers:** who is a client and for how long ([`Engine`]), which of its requests were done
//! already ([`Sequenced`], [`Turn`]), what it has open, locked and delegated, whose turn it is for
//! a byte range ([`FileLocks`]), and who may reclaim what after a restart ([`Recovered`]).
//!
//! It does no I/O, reads no clock and rolls no dice: the time is an argument, and what must go out
//! is returned as a value. What the shell owes it:
//!
//! - [`Engine::tick`] about once a second;
//! - [`Engine::poll_effect`] whenever [`Engine::has_effects`]: what must be said to clients. The
//!   shell tells what came of it by [`Engine::recall_sent`], [`Engine::callbacks_work`],
//!   [`Engine::callbacks_fail`], [`Engine::writer_attributes`], [`Engine::slots_recalled`] and
//!   [`Engine::forget_offload`]; over a new session it says [`Engine::recalls`] and
//!   [`Engine::offloads`] again;
//! - [`Engine::poll_records`] whenever [`Engine::unstored`]: what must be stored before the answer
//!   to any operation on state leaves; then [`Engine::stored`]. At the start it makes a
//!   [`Recovered`] of what was stored.
//!
//! A lock or a delegation that the file system must know of, too (OFD locks, file leases), is taken
//! from the engine first; where the file system then refuses it, [`Engine::unlock`] and
//! [`Engine::delegreturn`] take it back before anybody was told ([`Locals`]). That a program on the
//! server wants a file that is delegated is told by [`Engine::program_waits`].
//!
//! **May not know:** the wire, file systems, threads, clocks.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod cb_getattr;
mod client;
mod client_state;
mod close;
mod counters;
mod delegation;
mod deny;
mod effect;
mod engine;
mod error;
mod file;
mod grace;
mod hosts;
mod id_hasher;
mod ids;
pub mod limits;
mod local_locks;
mod lock;
mod lock_ops;
mod lock_place;
mod lookup;
mod memory_pool;
mod nlm;
mod offload;
mod open;
mod owner;
mod recall_any;
mod report;
mod session;
mod stateid;
mod stateid_check;
mod stats;
mod sync;
mod table;
mod unacknowledged_grants;

pub use cb_getattr::WriterSays;
pub use client::{CallbackAddress, Client, ExchangeId, Exchanged, Introduced, Setclientid};
pub use client_state::Counts;
pub use comity_credential::Origin;
pub use comity_vfs::FileKey;
pub use counters::Totals;
pub use delegation::{Delegation, DelegationWish, NoDelegation};
pub use effect::{Effect, Identity, Mark, Record, RecordedClient};
pub use engine::{Engine, Settings};
pub use error::{Error, Result};
pub use file::{DelegationKind, Share};
pub use grace::Recovered;
pub use ids::{
    Caller, ClientId, ClientOwner, ConnectionId, Desk, Principal, Secret, SessionId, Verifier,
};
pub use limits::Limits;
pub use local_locks::{Locals, Parts, Taken};
pub use lock::{ByteRange, Conflict, FileLocks, LockType, Offer};
pub use lock_ops::{Lock, LockRefusal, Locker};
pub use lookup::{At, Bearer, Sender};
pub use nlm::{Claiming, HostLock};
pub use offload::{BeginOffload, CopyUnderWay, OffloadEnd, OffloadStatus};
pub use open::{Before, Claim, Open, Opened};
pub use owner::{OwnerAnswer, OwnerReply, OwnerTurn, Turn};
pub use report::{Awaited, ClientSummary, Held, HeldState, Waiting};
pub use session::{
    BackChannel, CallbackSecurity, ChannelAttrs, CreateSession, CreatedSession, Direction,
    Sequence, SequenceAnswer, Sequenced, Session, StatusFlags, Ticket,
};
pub use stateid::{Special, Stateid};
pub use stateid_check::{Io, Shown};
pub use stats::Census;

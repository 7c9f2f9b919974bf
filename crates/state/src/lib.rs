//! The state that a server of NFSv4 and NLM must keep, as plain data.
//!
//! **Answers:** which clients there are and how long they live ([`Engine`]), which of their
//! requests were done already ([`Sequenced`], [`SeqidCheck`]), which files they have open, locked
//! and delegated, which owner is next for a byte range ([`FileLocks`]), and who may reclaim what
//! after a restart ([`Recovered`]).
//!
//! It does no I/O, reads no clock and uses no randomness. The time is an argument, and messages to
//! clients are returned as values. The shell must make these calls:
//!
//! - [`Engine::tick`] about once a second;
//! - [`Engine::poll_effect`] whenever [`Engine::has_effects`]: it returns the messages to clients.
//!   The shell reports their outcome by [`Engine::recall_sent`], [`Engine::callbacks_work`],
//!   [`Engine::callbacks_fail`], [`Engine::writer_attributes`], [`Engine::slots_recalled`] and
//!   [`Engine::forget_offload`]. Over a new session it sends [`Engine::recalls`] and
//!   [`Engine::offloads`] again;
//! - [`Engine::poll_records`] whenever [`Engine::unstored`]: it returns the records that must be
//!   stored before the reply to any operation on state is sent. The shell then calls
//!   [`Engine::stored`]. At the start it makes a [`Recovered`] of the stored records.
//!
//! Some locks and delegations must also be known to the file system (OFD locks, file leases). The
//! engine grants them first. If the file system then refuses, [`Engine::unlock`] and
//! [`Engine::delegreturn`] take the grant back before a client is told ([`Locals`]). The shell
//! calls [`Engine::program_waits`] when a program on the server wants a file that is delegated.
//!
//! **Inside:** data stands below and operations stand above. No module uses one that stands above
//! it, neither by a name nor by a call of a method. Modules of one layer may use each other, but
//! not in a cycle (`cargo xtask tidy`). Modules of data have names in the singular,
//! modules of operations in the plural. From below to above:
//!
//! 1. `ids`, `stateid`, `error`, `limits`, `table`, `memory_pool`, `lock`, `layout`: identifiers,
//!    bounds, containers, the byte-range locks of one file, and a client's layout of one file.
//! 2. `file`, `channel`, `client_state`, `record`, `directories`: the state of one file, the slots
//!    and connections of a session, the state of one client, records for stable storage, the use of
//!    directories.
//! 3. `client`, `session`, `recovery`, `effect`, `counters`: a client, a session, who may reclaim,
//!    messages to clients, counts of events.
//! 4. `engine`: [`Engine`], which has the tables of all of these, and its [`Settings`].
//! 5. `grace`, `release`, `lookup`, `clients`, `courtesy`: steps that operations share. A state
//!    leaves its file, a layout ends with what it needs, a stateid is looked up, an expired client
//!    is evicted.
//! 6. `delegations`, `layouts`, `locks`, `opens`, `nlm`, `sessions`, `offloads`, `grantees`,
//!    `stateid_check`: the facades. Each is a set of `impl Engine` blocks about one public noun.
//! 7. `report`, `migration`, `tick`: reports for administrators; clients
//!    ([`Engine::export_client`], [`Engine::import_client`]) and volumes
//!    ([`Engine::hand_over_volume`], [`Engine::import_volume`], [`Engine::forget_volume`]) whose
//!    state moves to another engine, and the bytes by which it is sent; and deadlines.
//!
//! **May not know:** the messages of protocols, file systems, threads, clocks.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod channel;
mod client;
mod client_state;
mod clients;
mod counters;
mod courtesy;
mod delegations;
mod directories;
mod effect;
mod engine;
mod error;
mod export_grace;
mod export_graces;
mod file;
mod grace;
mod grantees;
mod id_hasher;
mod ids;
mod layout;
mod layouts;
pub mod limits;
mod local_locks;
mod lock;
mod locks;
mod lookup;
mod memory_pool;
mod migration;
mod nlm;
mod offloads;
mod opens;
mod record;
mod recovery;
mod release;
mod report;
mod session;
mod sessions;
mod stateid;
mod stateid_check;
mod sync;
mod table;
mod tick;

pub use channel::{
    BackChannel, CallbackSecurity, ChannelAttrs, CreatedSession, Direction, ExportedReply,
    ExportedSession, ExportedSlot, Sequence, SequenceAnswer, StatusFlags,
};
pub use client::{Client, ExportedClient};
pub use client_state::{
    Announced, BeginOffload, CallbackAddress, ExportedGrant, ExportedKind, ExportedOwner,
    ExportedState, HeldCounts, OffloadEnd, OwnerKind, OwnerReply, Revocation, RevokedState,
};
pub use clients::{ExchangeId, Exchanged, Introduced, Setclientid};
pub use comity_credential::{Grantee, KeyId, Origin, OriginChannel};
pub use comity_vfs::FileKey;
pub use courtesy::LockRefusal;
pub use delegations::{
    DelegatedAttributes, Delegation, DelegationWish, DirectoryRequest, NoDelegation, NoDirectory,
    Notified,
};
pub use directories::{
    Adaptive, Always, ChildAttributes, DirectoryNotice, DirectoryPolicy, DirectoryUse, Never,
    NotedChange, NoticeBatch, NoticeWishes, SecondAsk,
};
pub use effect::Effect;
pub use engine::{Engine, Settings};
pub use error::{Error, Result};
pub use export_graces::EndingGrace;
pub use file::{
    DelegationKind, ExportedFile, ExportedRecall, ExportedWait, ExportedWriter,
    ExportedWriterReply, Share,
};
pub use grantees::{GrantedAccess, GrantedFiles};
pub use ids::{
    Caller, ClientId, ClientOwner, ClientProtocol, ConnectionId, Principal, Secret, SessionId,
    Verifier,
};
pub use layout::LayoutIomode;
pub use layouts::LayoutScope;
pub use limits::Limits;
pub use local_locks::{LocalLock, Locals, Parts, Taken};
pub use lock::{ByteRange, Conflict, FileLocks, LockType, Offer, QueuedLock};
pub use locks::{Lock, Locker};
pub use lookup::{At, Bearer, Sender};
pub use migration::{
    ExportRefusal, ExportedVolume, ImportRefusal, MovingFiles, Section, TransferError,
};
pub use nlm::{HostLock, LockRequestKind};
pub use offloads::{CopyUnderWay, OffloadStatus};
pub use opens::{Before, Claim, Open, Opened, OwnerAnswer, OwnerTurn, SeqidCheck};
pub use record::{Identity, JournalPosition, Record, RecordedClient};
pub use recovery::Recovered;
pub use report::{
    Awaited, Census, ClientSummary, HeldState, Occupied, StateDetails, Totals, Waiting,
};
pub use session::Session;
pub use sessions::{CreateSession, Sequenced, Ticket};
pub use stateid::{Special, StateName, Stateid};
pub use stateid_check::{Io, Shown};

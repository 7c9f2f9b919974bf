//! Bounds of the state, with their reasons.

use std::time::Duration;

/// Bounds that a site may have other wishes about; tests reach them.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Clients, confirmed or not. A client without state is about 1 KB; a big site has thousands.
    /// One origin has no more of them than an eighth of what it leaves, but for a few.
    pub clients: usize,
    /// Sessions of one client. Linux makes one; trunking over several addresses a few.
    pub sessions_per_client: usize,
    /// Slots of one session. Linux asks for 64 and uses up to 1,024.
    pub slots_per_session: u32,
    /// Bytes of all replies that are kept for retries, by what the sessions' slots may hold. The
    /// clients of one origin have no more of them together than they leave for all others, but for
    /// the least that the first needs.
    pub reply_cache_bytes: usize,
    /// Bytes of all that clients hold: owners, opens, locks and delegations. The clients of one
    /// origin have no more of them together than they leave for all others. A client that is away
    /// longer than its lease has none of them when they become short.
    pub held_bytes: usize,
    /// Opens and lock states of one client: a build opens thousands of files, a leak more.
    pub states_per_client: usize,
    /// Open-owners and lock-owners of one client: one a process, at most.
    pub owners_per_client: usize,
    /// Byte ranges that are held or waited for in one file. A database locks tens of thousands.
    pub locks_per_file: usize,
    /// Delegations of all clients: about 500 bytes each.
    pub delegations: usize,
    /// Copies of one client that are under way, or have ended without its knowing: more would share
    /// one disk, and a program copies one file at a time.
    pub offloads_per_client: usize,
}

impl Limits {
    /// Bounds for a server of one machine.
    pub const DEFAULT: Self = Self {
        clients: 16_384,
        sessions_per_client: 64,
        slots_per_session: 256,
        reply_cache_bytes: 512 << 20,
        held_bytes: 1 << 30,
        states_per_client: 1 << 18,
        owners_per_client: 1 << 16,
        locks_per_file: 1 << 18,
        delegations: 1 << 18,
        offloads_per_client: 64,
    };
}

/// Bytes that an open, a lock state or a delegation takes, and what is known of its file.
pub(crate) const STATE_BYTES: usize = 448;

/// Bytes that an owner takes, and the answer that is kept for it; its name comes twice to that.
pub(crate) const OWNER_BYTES: usize = 512;

/// Bytes that a byte range takes among many.
pub(crate) const RANGE_BYTES: usize = 192;

/// Slots a session begins with, if as many are asked for: what Linux asks for.
pub(crate) const SLOTS_START: u32 = 64;

/// Slots a session keeps when memory is short: enough to go on.
pub(crate) const SLOTS_MIN: u32 = 4;

/// Pause between two recalls of slots of a session: a client follows with its next request, and an
/// idle one sends that within some seconds of CB_RECALL_SLOT.
pub(crate) const SLOT_RECALL_REST: Duration = Duration::from_secs(10);

/// Pause between two CB_RECALL_ANY to a client, which looks through all its delegations and returns
/// them one by one.
pub(crate) const RECALL_ANY_REST: Duration = Duration::from_secs(5);

/// Bytes of one reply that are kept for a retry: beyond it a request is told that its reply is too
/// big to be kept. What must not be done twice has small replies; Linux asks for less.
pub(crate) const CACHED_REPLY_BYTES_MAX: u32 = 8 * 1024;

/// Bytes of a small reply that is kept without being asked for.
pub(crate) const SMALL_REPLY_BYTES_MAX: usize = 1024;

/// The least a session's replies may hold: a SEQUENCE and an error.
pub(crate) const REPLY_BYTES_MIN: u32 = 256;

/// Operations of one COMPOUND. Linux sends about ten.
pub(crate) const OPERATIONS_MAX: u32 = 64;

/// Requests of the server in flight to one client over its back channel.
pub(crate) const BACK_SLOTS_MAX: u32 = 16;

/// Connections of one session: nconnect goes to 16.
pub(crate) const CONNECTIONS_MAX: usize = 64;

/// Owners of a client among which those are looked for that have nothing: so many may be left.
pub(crate) const REAPED_MIN: usize = 64;

/// The part of the free places that the clients of one origin may take at most, so that many
/// origins that take all they get leave some.
pub(crate) const FAIR_PART: usize = 8;

/// Clients of one origin that are let in even beyond its part: behind one address there may be the
/// machines of a small office.
pub(crate) const CLIENTS_PER_ORIGIN_MIN: usize = 16;

/// Time for which an origin is refused at once after no client could go for it: that check looks at
/// all clients.
pub(crate) const REFUSAL: Duration = Duration::from_secs(1);

/// The part of all clients that goes at once when the table is full of clients without state: 64 of
/// 16,384, while a thousand may be on their way to confirm themselves.
pub(crate) const GOING_PART: usize = 256;

/// Silence after which a host of NLM that holds something is asked whether it is there, and the
/// pause between two questions. A question costs two short connections.
pub(crate) const HOST_ASK_PAUSE: Duration = Duration::from_secs(60);

/// Silence after which others may take the locks of a host of NLM that answered once and does not
/// any more: a machine takes a few minutes to restart, and says so then.
pub(crate) const HOST_GONE_AFTER: Duration = Duration::from_secs(300);

/// Number of questions in a row that it must leave unanswered: one may meet a network that is down
/// for a moment, or a server that is short of sockets.
pub(crate) const HOST_QUESTIONS_MIN: u32 = 3;

/// Number of clients in the way of another that are shown at most: enough to find the root of a
/// wait.
pub(crate) const BLOCKERS_SHOWN_MAX: usize = 8;

/// Byte ranges of a lock-owner that are shown, of perhaps tens of thousands.
pub(crate) const RANGES_SHOWN_MAX: usize = 16;

/// Pause while waiting for the holder of a write delegation to answer CB_GETATTR, which takes a
/// round trip of the network. After the last pause the caller is told to retry, which Linux does
/// after a tenth of a second in NFSv4, and after five seconds in NFSv3.
pub const WRITER_PAUSE: Duration = Duration::from_millis(1);

/// Number of these pauses.
pub const WRITER_PAUSES_MAX: u32 = 100;

/// Parts of a table that clients meet in by chance only.
pub(crate) const SHARDS: usize = 64;

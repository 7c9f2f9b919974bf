//! Bounds of the state, with their reasons.

use std::time::Duration;

/// Bounds that a site may want to change; tests reach them.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Clients, confirmed or not. A client without state takes about 1 KB; a big site has
    /// thousands. The clients of one origin may take an eighth of the free places, and a few in any
    /// case.
    pub clients: usize,
    /// Sessions of one client. Linux makes one; trunking over several addresses a few.
    pub sessions_per_client: usize,
    /// Slots of one session. Linux asks for 64 and uses up to 1,024.
    pub slots_per_session: u32,
    /// Bytes of all replies that are kept for retries, counted by the most that each slot may keep.
    /// The clients of one origin may use at most as many bytes as they leave for all others, except
    /// the least that their first session needs.
    pub reply_cache_bytes: usize,
    /// Bytes of all owners, opens, locks and delegations. The clients of one origin may use at most
    /// as many bytes as they leave for all others. If the memory is short, clients whose lease has
    /// expired lose their state.
    pub held_bytes: usize,
    /// Opens and lock states of one client. A build opens thousands of files; a leak opens more.
    pub states_per_client: usize,
    /// Open-owners and lock-owners of one client; clients have at most one for each process.
    pub owners_per_client: usize,
    /// Byte ranges of one file that are locked or waited for. A database locks tens of thousands.
    pub locks_per_file: usize,
    /// Delegations of all clients. Each takes about 500 bytes.
    pub delegations: usize,
    /// Files that are locked against programs on the server. Each keeps descriptors open; the
    /// clients of one origin may lock as many as they leave for all others.
    pub locked_files: usize,
    /// Copies of one client that are under way, or have ended without an acknowledgement. More
    /// copies would compete for one disk, and a program copies one file at a time.
    pub offloads_per_client: usize,
}

impl Limits {
    /// The bounds for a server on one machine.
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
        locked_files: 1 << 18,
        offloads_per_client: 64,
    };
}

/// Bytes of an open, a lock state or a delegation, with its part of the file's record.
pub(crate) const STATE_BYTES: usize = 448;

/// Bytes of an owner, with the reply that is kept for it. The name of the owner is added twice.
pub(crate) const OWNER_BYTES: usize = 512;

/// Bytes of a byte range in a large index.
pub(crate) const RANGE_BYTES: usize = 192;

/// Most ranges of one iomode in a layout. Clients ask for whole files, or for a few ranges.
pub(crate) const LAYOUT_RANGES_MAX: usize = 256;

/// Number of changes of a layout by which a request may be behind. As many requests of a client may
/// be on their way at once.
pub(crate) const LAYOUT_SEQIDS_OLD_MAX: u32 = 1024;

/// Time after a conflicting operation in which no layout of the file is given out. A host of NFSv3
/// repeats its call after 5 s, and a Linux client of NFSv4 after 15 s at most.
pub(crate) const LAYOUT_REST: Duration = Duration::from_secs(15);

/// Time between two calls of [`crate::Engine::tick`] and of [`crate::Engine::notify_children`]. A
/// notification of changed attributes is sent earlier by as much, so that it is not late.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Most objects in one directory whose attributes a client has seen and is told when they change;
/// with one more the directory is recalled. Each takes about 250 bytes, and directories that are
/// listed often have fewer entries.
pub(crate) const CHILDREN_OF_ONE_MAX: usize = 8192;

/// The same for all directories and clients: 32 MB.
pub(crate) const CHILDREN_MAX: usize = 1 << 17;

/// Slots of a new session, if the client asks for as many. Linux asks for this number.
pub(crate) const SLOTS_START: u32 = 64;

/// Slots that a session keeps when memory is short; the client can still work with them.
pub(crate) const SLOTS_MIN: u32 = 4;

/// Most requests of a slot that another server may have answered while an address moved: a client
/// repeats a request that was delayed some times a second.
pub(crate) const SKIPPED_MAX: u32 = 1024;

/// Pause between two recalls of slots of a session. A client follows with its next request, and an
/// idle client sends one within seconds of CB_RECALL_SLOT.
pub(crate) const SLOT_RECALL_REST: Duration = Duration::from_secs(10);

/// Pause between two CB_RECALL_ANY to a client. The client searches all its delegations, and
/// returns them one by one.
pub(crate) const RECALL_ANY_REST: Duration = Duration::from_secs(5);

/// Most bytes of a reply that is kept for a retry. A request with a longer reply is refused with
/// `NFS4ERR_REP_TOO_BIG_TO_CACHE`. Operations that must not be repeated have small replies, and
/// Linux asks for less.
pub(crate) const CACHED_REPLY_BYTES_MAX: u32 = 8 * 1024;

/// Most bytes of a reply that is kept although the client did not ask for it.
pub(crate) const SMALL_REPLY_BYTES_MAX: usize = 1024;

/// Fewest bytes of a reply that a session must allow: a SEQUENCE and an error.
pub(crate) const REPLY_BYTES_MIN: u32 = 256;

/// Most operations of a COMPOUND. Linux sends about ten.
pub(crate) const OPERATIONS_MAX: u32 = 64;

/// Requests of the server in flight to one client over its back channel.
pub(crate) const BACK_SLOTS_MAX: u32 = 16;

/// Credentials that a client may accept in callbacks. The XDR decoder accepts as many in a
/// CREATE_SESSION.
pub(crate) const CALLBACK_SECURITIES_MAX: usize = 16;

/// Bytes of the machine's name in AUTH_SYS (RFC 5531, appendix A).
pub(crate) const MACHINE_BYTES_MAX: usize = 255;

/// Further groups in AUTH_SYS (RFC 5531, appendix A).
pub(crate) const MACHINE_GROUPS_MAX: usize = 16;

/// Connections of one session. Linux uses up to 16 (`nconnect`).
pub(crate) const CONNECTIONS_MAX: usize = 64;

/// Fewest owners of a client at which idle ones are removed.
pub(crate) const REAPED_MIN: usize = 64;

/// Clientids of other engines that are remembered although their clients are gone. Each takes about
/// 30 bytes. A client whose clientid is forgotten is told that the server has restarted, which has
/// the same consequence: it loses its state.
pub(crate) const FOREIGN_IDS_MAX: usize = 1 << 16;

/// Moves of exports that one client has to hear of. A client mounts fewer exports of one server,
/// and asks for all of them when it hears of one.
pub(crate) const MOVES_MAX: usize = 64;

/// The clients of one origin may take at most this part of the free places. Many origins that each
/// take their part still leave some places.
pub(crate) const FAIR_PART: usize = 8;

/// Clients of one origin that are accepted beyond its part: one address may stand for all machines
/// of a small office.
pub(crate) const CLIENTS_PER_ORIGIN_MIN: usize = 16;

/// Time for which new clients of an origin are refused without a search, after a search found no
/// client that could be evicted. The search reads all clients.
pub(crate) const REFUSAL: Duration = Duration::from_secs(1);

/// The part of all clients that is forgotten at once when the table is full of clients without
/// state: 64 of 16,384. A thousand others may be about to confirm themselves.
pub(crate) const GOING_PART: usize = 256;

/// Time of silence after which a host of NLM with locks is probed, and the pause between two
/// probes. A probe costs two short connections.
pub(crate) const HOST_ASK_PAUSE: Duration = Duration::from_secs(60);

/// Time of silence after which others may take the locks of a host of NLM that has answered probes
/// before. A machine restarts within a few minutes, and sends SM_NOTIFY then.
pub(crate) const HOST_GONE_AFTER: Duration = Duration::from_secs(300);

/// Number of probes in a row that must stay unanswered. One may fail because the network is down
/// for a moment, or because the server has no free socket.
pub(crate) const HOST_QUESTIONS_MIN: u32 = 3;

/// Most clients that a report names as holders of a lock that a client waits for. They are enough
/// to find the cause.
pub(crate) const BLOCKERS_SHOWN_MAX: usize = 8;

/// Most byte ranges of a lock-owner that a report shows. There may be tens of thousands.
pub(crate) const RANGES_SHOWN_MAX: usize = 16;

/// Pause while waiting for the holder of a write delegation to answer CB_GETATTR, which takes a
/// network round trip. After the last pause the caller is told to retry. Linux retries after a
/// tenth of a second in NFSv4, and after five seconds in NFSv3.
pub const WRITER_PAUSE: Duration = Duration::from_millis(1);

/// Number of these pauses.
pub const WRITER_PAUSES_MAX: u32 = 100;

/// Time for which a change of a directory waits until notifications of it are acknowledged, in
/// pauses of [`WRITER_PAUSE`]. Then the delegations of silent clients are recalled.
pub const NOTICE_PAUSES_MAX: u32 = 100;

/// Time for which the change then waits for the end of these delegations, in the same pauses.
/// Afterwards it is acknowledged. It has been made, so that the caller cannot be told DELAY.
pub const SILENT_PAUSES_MAX: u32 = 1000;

/// Time for which a directory is kept free for a change that was told to come back after a recall.
/// A host of NFSv3 repeats its call after 5 s, and a Linux client of NFSv4 after 15 s at most.
pub(crate) const CHANGE_WAITS: Duration = Duration::from_secs(15);

/// Most directories that are kept free for such changes. Each has lost a delegation within the last
/// seconds; each takes about 200 bytes.
pub(crate) const DIRECTORIES_WAITED_FOR_MAX: usize = 1 << 14;

/// Most clients for whose changes one directory is kept free. When these have made their changes,
/// the others find it free too, or wait once more.
pub(crate) const WAITING_CHANGERS_MAX: usize = 64;

/// Shortest rest of a client after the recall of a directory. A program that makes files one after
/// another is done with most directories in less.
pub(crate) const DIRECTORY_REST_MIN: Duration = Duration::from_secs(10);

/// Longest rest. A directory that others change all the time is tried once an hour.
pub(crate) const DIRECTORY_REST_MAX: Duration = Duration::from_secs(3600);

/// Directories of all clients whose use is remembered. Each takes about 350 bytes.
pub(crate) const DIRECTORY_USES_MAX: usize = 1 << 16;

/// Parts of a table, each with its own lock. Two clients use the same part only by chance.
pub(crate) const SHARDS: usize = 64;

//! Limits on answers and waits.

use std::time::Duration;

/// Longest time from the freeze of the exports until the whole state of the clients is sent. If it
/// takes longer, the migration fails and the exports stay.
pub(crate) const FREEZE_PATIENCE: Duration = Duration::from_secs(5);

/// Time between two looks at what a frozen export waits for.
pub(crate) const FREEZE_POLL: Duration = Duration::from_millis(1);

/// Time between two looks at what clients have returned.
pub(crate) const RECALL_POLL: Duration = Duration::from_millis(50);

/// Longest time for which clients may return what cannot move, before the exports are frozen.
pub(crate) const RECALL_PATIENCE: Duration = Duration::from_secs(20);

/// Time that a peer has to tell its load.
pub(crate) const LOAD_PATIENCE: Duration = Duration::from_secs(5);

/// Most peers whose load is asked for at once.
pub(crate) const LOAD_PEERS_MAX: usize = 16;

/// Time that a peer has for a call that is forwarded to it.
pub(crate) const FORWARD_PATIENCE: Duration = Duration::from_secs(10);

/// Time for which no call is forwarded to a peer that did not answer.
pub(crate) const FORWARD_PAUSE: Duration = Duration::from_secs(2);

/// Most calls that are being forwarded to a peer. Each holds a thread, and further ones are told to
/// wait.
pub(crate) const FORWARDED_CALLS_MAX: usize = 16;

/// Longest time between two checks of the state that clients hold by grants, if no change is known:
/// a program on the server may have moved a file. The client's calls are refused within a second in
/// any case.
pub(crate) const RIGHTS_ROUND: Duration = Duration::from_secs(10);

/// Most clients in one answer, which then has 100 KB, so that an answer does not block other
/// requests.
pub(crate) const CLIENTS_PAGE: usize = 256;

/// Most states of a client (opens, locks, delegations) in one answer, which then has 250 KB.
pub(crate) const STATES_PAGE: usize = 1024;

/// Most waiting owners in an answer; of further ones only the number is reported. There are no
/// pages, because waiters come and go in no order.
pub(crate) const WAITS_SHOWN_MAX: usize = 4096;

/// Parts into which files are divided for locking; one thread at a time handles a part. With this
/// number two calls rarely meet.
pub(crate) const LOCAL_PARTS: usize = 64;

/// Byte ranges of a file that the server locks one by one for local programs; beyond it the whole
/// file is locked. The kernel searches a list of such locks: with tens of thousands, each call
/// would take as long as a round trip.
pub(crate) const LOCAL_RANGES_MAX: usize = 1024;

/// Most replies of the lock manager that wait to be sent as calls, of which an origin may have as
/// many as it leaves for others. Beyond it replies are dropped, and hosts ask again.
pub(crate) const MESSAGES_MAX: usize = 1024;

/// Seconds for which the address of a host's lock manager is cached. Then it is looked up again,
/// because the host may have restarted.
pub(crate) const MAILBOX_SECONDS: u64 = 60;

/// Most hosts whose address is cached.
pub(crate) const MAILBOXES_MAX: usize = 1024;

/// Time between revoking a file from a client and the moment when the kernel lets the waiting
/// program continue: timers have a resolution of one second, and calls that the client has sent
/// must be completed.
pub(crate) const BREAK_RESERVE: Duration = Duration::from_secs(5);

/// Pause before another attempt to write a failed store: an attempt writes the records of all
/// clients, some megabytes at most, and calls wait for it.
pub(crate) const REPAIR_PAUSE: Duration = Duration::from_secs(5);

/// Most asynchronous copies, of which an origin may have as many as it leaves for others: beyond it
/// a copy is made while its client waits, in parts. Each takes about a kilobyte of memory.
pub(crate) const COPIES_MAX: usize = 1024;

/// Threads for copies: two keep a disk busy and leave most of a machine to other work.
pub(crate) const COPIERS: usize = 2;

/// First pause of a copy that cannot continue: a recall takes about as long as a reply of another
/// client.
pub(crate) const COPY_PAUSE_MIN: Duration = Duration::from_millis(20);

/// Longest pause of a copy that cannot continue; pauses double up to it. Even [`COPIES_MAX`]
/// waiting copies must not keep a processor busy.
pub(crate) const COPY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Threads that call other hosts; a host that does not answer blocks one for seconds. Their number
/// is bounded, and still large enough that such a host does not delay others for long.
pub(crate) const HOST_THREADS_MAX: usize = 64;

/// Most of these threads that call one host, or the hosts of one /64 of IPv6: anybody who may call
/// the server can make it call an address where nobody answers, once for each client.
pub(crate) const THREADS_PER_HOST_MAX: usize = 8;

/// Samples after which disks and network interfaces are searched again, because there may be new
/// ones: a minute.
pub(crate) const DEVICES_REREAD: u32 = 60;

/// Most clients and exports in the load report: the answer then has 60 KB, and more would not fit
/// on a screen.
pub(crate) const LOAD_CLIENTS_SHOWN: usize = 200;

/// Most connections to the web page. An open page uses one for its events, and another for
/// requests.
pub(crate) const WEB_CONNECTIONS_MAX: usize = 256;

/// Longest life of a connection to the web page in seconds. The page then opens another one.
pub(crate) const WEB_CONNECTION_SECONDS: u64 = 3600;

/// Seconds without a byte after which a connection to the web page is closed. Events come each
/// second.
pub(crate) const WEB_IDLE_SECONDS: u64 = 20;

/// Most bytes of a request of the web page, as on the control socket.
pub(crate) const WEB_BODY_BYTES_MAX: usize = 16_384;

/// Smallest memory for cached replies: the smallest session, with 4 slots of 8 KiB, takes half of
/// it.
pub const REPLY_CACHE_BYTES_MIN: usize = 64 * 1024;

/// Files for which data servers are asked for the size in one second. Each takes a call to each of
/// its data servers, so that the server can still stop soon.
pub(crate) const SIZES_AT_ONCE: usize = 1024;

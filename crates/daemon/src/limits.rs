//! Bounds of what is answered at once, and of what is waited for.

use std::time::Duration;

/// Longest time until all that clients hold by grants is looked at again, if nothing is known to
/// have changed: a program on the server may have moved a file. Its calls are refused within a
/// second all the same.
pub(crate) const RIGHTS_ROUND: Duration = Duration::from_secs(10);

/// Most clients in one answer, which then has 100 KB: a server with 10,000 clients makes no answer
/// that others have to wait for.
pub(crate) const CLIENTS_PAGE: usize = 256;

/// Most states of a client (opens, locks, delegations) in one answer, which then has 250 KB.
pub(crate) const STATES_PAGE: usize = 1024;

/// Most waiting owners that are shown; of further ones only the number is told. A later answer
/// could not continue the list, because waiters come and go in no order.
pub(crate) const WAITS_SHOWN_MAX: usize = 4096;

/// Parts of the files that are locked, each seen to by one thread at a time: enough that two calls
/// rarely meet.
pub(crate) const LOCAL_PARTS: usize = 64;

/// Byte ranges of a file that are shown to programs one by one; beyond it they find the whole file
/// locked. The kernel keeps such locks in a list: with tens of thousands of them each call would
/// take as long as a round trip.
pub(crate) const LOCAL_RANGES_MAX: usize = 1024;

/// Answers of the lock manager that are calls and wait to be sent. Beyond it hosts are not
/// answered, and ask again.
pub(crate) const MESSAGES_MAX: usize = 1024;

/// Threads that send these answers. A host that cannot be reached holds one of them for some
/// seconds, once in [`MAILBOX_SECONDS`].
pub(crate) const NLM_REPLY_THREADS: usize = 4;

/// Seconds for which the address is remembered to which a host wants the lock manager's answers, if
/// it has one. It is looked up again after that, because the host may have restarted.
pub(crate) const MAILBOX_SECONDS: u64 = 60;

/// Most hosts of which such an address is remembered.
pub(crate) const MAILBOXES_MAX: usize = 1024;

/// Time between taking a file from a client that was asked for it and the moment when the kernel
/// lets the waiting program go on. Time passes by the second, and what the client has sent must be
/// done.
pub(crate) const BREAK_RESERVE: Duration = Duration::from_secs(5);

/// Pause before a store that could not be written is tried again: an attempt writes all that is
/// known of clients, some megabytes at most, and calls wait for it.
pub(crate) const REPAIR_PAUSE: Duration = Duration::from_secs(5);

/// Copies that are under way: beyond it they are made while their clients wait, in parts. Each
/// takes about a kilobyte here.
pub(crate) const COPIES_MAX: usize = 1024;

/// Threads that make copies: two keep a disk busy, and leave most of what a machine has to others.
pub(crate) const COPIERS: usize = 2;

/// First pause of a copy that cannot continue: a recall takes as long as an answer of another
/// client does.
pub(crate) const COPY_PAUSE_MIN: Duration = Duration::from_millis(20);

/// The same in the end, each pause being twice the one before: as many copies as there may be that
/// all wait must not keep a processor busy.
pub(crate) const COPY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Threads that call other hosts, each for seconds if those do not answer: a host that is gone must
/// not keep others waiting for long, nor must many make a thread each.
pub(crate) const HOST_THREADS_MAX: usize = 64;

/// Of them those that wait for one host: whoever may call the server can have it call an address
/// where nobody answers, as often as there are clients.
pub(crate) const THREADS_PER_HOST_MAX: usize = 8;

/// Samples after which the disks and the network interfaces are looked for again, as new ones may
/// have come: a minute.
pub(crate) const DEVICES_REREAD: u32 = 60;

/// Most clients, and most exports, whose load is shown: the answer has 60 KB, and more than that do
/// not fit on a screen.
pub(crate) const LOAD_CLIENTS_SHOWN: usize = 200;

/// Connections at most to the web page. A page that is looked at holds one for its events, and
/// uses another for what its user asks.
pub(crate) const WEB_CONNECTIONS_MAX: usize = 256;

/// Seconds that a connection to the web page lasts. A page opens another one when it ends.
pub(crate) const WEB_CONNECTION_SECONDS: u64 = 3600;

/// Seconds that a connection to the web page stays without a byte on it. Its events come each
/// second.
pub(crate) const WEB_IDLE_SECONDS: u64 = 20;

/// Most bytes of a request of the web page, as on the control socket.
pub(crate) const WEB_BODY_BYTES_MAX: usize = 16_384;

/// Least memory for replies: a session at its smallest, 4 slots of 8 KiB, takes half of it.
pub const REPLY_CACHE_BYTES_MIN: usize = 64 * 1024;

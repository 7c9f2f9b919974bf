//! Bounds of what is answered at once, and of what is waited for.

use std::time::Duration;

/// Clients in one answer: 100 KB of it, so that a server with 10,000 clients makes no answer that
/// anybody has to wait for.
pub(crate) const CLIENTS_PAGE: usize = 256;

/// States of a client in one answer: opens, locks, delegations; 250 KB of it.
pub(crate) const STATES_PAGE: usize = 1024;

/// Those who wait that are shown: beyond it only their number is told. There is no order in which
/// one could go on later, since they come and go.
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

/// Threads that send them. A host that cannot be reached keeps one for some seconds, once in
/// [`MAILBOX_SECONDS`].
pub(crate) const NLM_REPLY_THREADS: usize = 4;

/// Seconds for which it is known where a host takes such answers, or that it does not: it may have
/// started anew.
pub(crate) const MAILBOX_SECONDS: u64 = 60;

/// Hosts of which that is known.
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

/// Least memory for replies: a session at its smallest, 4 slots of 8 KiB, takes half of it.
pub const REPLY_CACHE_BYTES_MIN: usize = 64 * 1024;

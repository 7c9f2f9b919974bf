//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Longest record in bytes: the largest READ or WRITE that is offered, and everything around its
/// data.
pub const RECORD_BYTES_MAX: usize = (1 << 20) + (64 << 10);

/// Most bytes received at once into a worker's own buffer, unless the previous record was longer. A
/// batch of small calls fits.
pub const BATCH_BYTES: usize = 64 << 10;

/// A record longer than [`BATCH_BYTES`] gets a buffer of full size once this many bytes of it have
/// arrived; until then it takes no more memory than the bytes received.
pub const LARGE_ARRIVED_BYTES: usize = 16 << 10;

/// Replies are sent once this many bytes of them wait: large ones are sent while they are in the
/// processor's cache, and a peer that does not read makes the server keep little.
pub const SEND_BYTES: usize = 128 << 10;

/// Capacity that a worker's reply buffer keeps between batches: one READ of 1 MiB and its
/// neighbours.
pub const REPLY_BYTES_KEPT: usize = RECORD_BYTES_MAX + SEND_BYTES;

/// Number of receives of a connection in one turn; enough for a few records of 1 MiB.
pub const PASSES_MAX: u32 = 8;

/// Calls of one connection whose slow halves are finished together; more than any client has in
/// flight by default (the Linux client: 64 slots by default on fast links).
pub const LATES_MAX: usize = 64;

/// Calls of one connection that separate threads execute because they sleep: disks gain little from
/// more, and a few connections must not use all threads.
pub const CALLS_AWAY_MAX: u32 = 16;

/// Longest search for the process that has a port.
pub const OWNER_PATIENCE: Duration = Duration::from_secs(1);

/// Pause between checks for memory for replies of a call whose connection was handed off: peers
/// that read free memory in that time.
pub const OWED_PAUSE: Duration = Duration::from_millis(5);

/// Number of these checks before the connection is closed: two seconds.
pub const OWED_TRIES: u32 = 400;

/// Bytes received at once in a handshake: a hello and a certificate fit.
pub const HANDSHAKE_RECEIVE_BYTES: usize = 4096;

/// Handshakes that peers to which no export is offered may begin each second, in total. One takes
/// about 0.3 ms of a core: strangers get 3 % of one. A machine that is identified only by its key
/// begins one when it mounts.
pub const STRANGER_HANDSHAKES_A_SECOND: u32 = 100;

/// Handshakes that such peers at one address (IPv6: one /64) may begin each second, so that it
/// takes a dozen addresses to delay others.
pub const STRANGER_HANDSHAKES_PER_ADDRESS: u32 = 8;

/// Most bytes that are received and decrypted at once on a TLS connection: as [`BATCH_BYTES`].
pub const OPENED_BYTES_MAX: usize = BATCH_BYTES;

/// Most bytes of data that are encrypted and then sent together: four records of TLS. More would
/// leave the cache before they are sent, and all of them are kept for a peer that does not read.
pub const SEALED_BYTES_MAX: usize = 64 << 10;

/// Connections reported by one wait; for more, another wait follows.
pub const EVENTS_MAX: usize = 64;

/// Starved connections that are tried again in one turn of an event loop. A try takes some 10 us,
/// so that a call of another connection waits at most a third of a millisecond longer.
pub const RETRIES_A_TURN: usize = 32;

/// Large record buffers kept for reuse while unused: two for each of a few workers.
pub const LARGE_BUFFERS_KEPT: usize = 8;

/// Threads that wait for an event loop besides those that run one. They take over when a call
/// sleeps; starting a thread costs a millisecond.
pub const SPARES_KEPT: usize = 2;

/// Seconds without an event loop after which a thread beyond [`SPARES_KEPT`] ends.
pub const SPARE_IDLE_SECONDS: u64 = 10;

/// Connections accepted from a listener before the other listeners are checked.
pub const ACCEPTS_MAX: u32 = 64;

/// Pause in milliseconds when the process has no descriptor for a connection that waits to be
/// accepted.
pub const ACCEPT_PAUSE_MS: u64 = 100;

/// One in this many connections is reserved for peers to which something is offered, however many
/// others connect.
pub const RESERVED_FOR_LISTED: usize = 4;

/// Connections that the kernel queues before they are accepted; after a power failure all clients
/// connect at once.
pub const LISTEN_BACKLOG: i32 = 4096;

/// One in this many of the process's descriptors may be a connection; the others are for files.
pub const DESCRIPTORS_PER_CONNECTION: usize = 2;

/// Descriptor limit that root sets even if its limit is lower: for the default number of
/// connections and the cache of open files.
pub const DESCRIPTORS_WANTED: u64 = 65_536;

/// Seconds of silence after which the kernel probes a peer.
pub const KEEPALIVE_SECONDS: u64 = 60;

/// Seconds between these probes.
pub const KEEPALIVE_INTERVAL_SECONDS: u64 = 15;

/// Number of unanswered probes that end a connection.
pub const KEEPALIVE_PROBES: u32 = 4;

/// Longest call or reply of the portmapper in bytes. Its calls and the server's list of programs
/// take less than 1 KiB.
pub const DATAGRAM_BYTES_MAX: usize = 4096;

/// Shortest call in bytes: a header of ten words (RFC 5531, 9). A shorter datagram gets no answer,
/// so that an answer to a peer that no export is offered to is never longer than what it sent.
pub const DATAGRAM_BYTES_MIN: usize = 40;

/// Datagrams received in one turn of their thread. One that is dropped takes about 1 us, so a flood
/// by hosts that no export is offered to takes a tenth of a processor at most. Floods of less than
/// 70,000 datagrams a second are received whole, so that no call of other hosts is lost in them.
pub const DATAGRAMS_A_TURN: usize = 4096;

/// Bytes of the receive buffer asked for; the kernel takes twice as many, and counts 768 for a
/// short datagram. It holds what comes in a turn and the rest after it.
pub const DATAGRAMS_BUFFER_BYTES: usize = 2 << 20;

/// Datagrams of hosts that no export is offered to that are answered in one turn; others of them
/// are dropped. An answer takes some 5 us, so that a turn delays calls by a tenth of a millisecond.
pub const STRANGERS_A_TURN: usize = 16;

/// Milliseconds that the thread of datagrams rests after a turn in which a host called that no
/// export is offered to. Each of 20 turns a second may disturb the eight calls that a listed client
/// has outstanding, which is less than one of two hundred of its calls. With 40 turns a second, the
/// calls that were disturbed decided its p99.
pub const STRANGERS_REST_MS: u64 = 50;

/// Most connections to the embedded portmapper; a call takes a millisecond.
pub const PORTMAP_CONNECTIONS_MAX: usize = 256;

/// Milliseconds between checks whether the embedded portmapper must stop.
pub const DATAGRAMS_STOP_MS: u64 = 500;

/// Seconds to wait for the machine's portmapper.
pub const PORTMAP_PATIENCE_SECONDS: u64 = 3;

/// Procedures of a version that are measured separately; NFSv3 has 22.
pub const MEASURED_PROCEDURES_MAX: u32 = 32;

/// Most connections to the metrics page; few clients read it.
pub const METRICS_CONNECTIONS_MAX: usize = 64;

/// Seconds that a connection to the metrics page lasts: a client that reads it every 15 seconds
/// uses a connection for a few requests.
pub const METRICS_CONNECTION_SECONDS: u64 = 60;

/// Exports whose successes are counted without a lock; servers with more are rare.
pub const DIRECT_EXPORTS: usize = 32;

/// Longest request at the control socket in bytes; the longest real one contains a path of 4,096
/// bytes with some escapes.
pub const CONTROL_LINE_BYTES_MAX: u64 = 16_384;

/// Seconds that a peer at the control socket has for each line.
pub const CONTROL_PATIENCE_SECONDS: u64 = 2;

/// Peers served at the control socket at once: operators and a few scripts.
pub const CONTROL_PEERS_MAX: usize = 16;

/// Seconds that a command waits for the answer of a running server, which takes milliseconds, or
/// for a sign of life if the answer takes longer.
pub const CONTROL_ANSWER_SECONDS: u64 = 5;

/// Seconds between two signs of life of a program that performs a request: some of them may be late
/// on a busy machine.
pub const CONTROL_PULSE_SECONDS: u64 = 1;

/// Seconds that a command waits if the server has to look up hosts and gives signs of life.
pub const CONTROL_WORK_SECONDS: u64 = 60;

/// Lines of one kind that are logged a second.
pub const LOG_LINES_A_SECOND: u32 = 5;

const _: () = assert!(LARGE_ARRIVED_BYTES < BATCH_BYTES && BATCH_BYTES < RECORD_BYTES_MAX);

/// Seconds a peer has to accept a connection for callbacks. A separate thread waits; an
/// unreachable client costs no more than a part of its lease.
pub const DIAL_SECONDS: u64 = 5;

/// Seconds for each step of a call to another host. A host that is not told of its lock asks again
/// half a minute later, so a longer wait gains nothing.
pub const REMOTE_CALL_SECONDS: u64 = 5;

/// Threads of a page for requests that may wait, such as for a name server.
pub const HTTP_BLOCKING_THREADS: usize = 4;

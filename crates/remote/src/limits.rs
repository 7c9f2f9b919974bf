//! Every bound of this crate, with its reason.

/// Largest reply that is expected, in bytes: a READ of 1 MiB and its header.
pub const REPLY_BYTES_MAX: usize = (1 << 20) + 4096;

/// Longest time in seconds that a server may stay silent before a call fails.
pub const SILENCE_SECONDS_MAX: u32 = 20;

/// Most bytes of a record that is received: a READ of 1 MiB, or a listing, with their headers. A
/// longer record ends the connection.
pub const RECORD_BYTES_MAX: usize = (1 << 20) + (64 << 10);

/// Most fragments of one record that is received; servers send one or a few.
pub const FRAGMENTS_MAX: usize = 1024;

/// Most bytes of calls that have no reply yet, including those that wait to be sent. It bounds the
/// memory that a silent server can occupy; threads with more calls wait.
pub const IN_FLIGHT_BYTES_MAX: usize = 32 << 20;

/// Slots requested for a session: as many as Linux's client requests.
pub const SLOTS_WANTED: u32 = 64;

/// Slots that are used at most, whatever a server grants later.
pub const SLOTS_MAX: u32 = 256;

/// Most operations of a COMPOUND, requested for a session: the longest COMPOUND here has a dozen.
pub const OPERATIONS_MAX: u32 = 32;

/// Bytes of a COMPOUND beside the data of its READ, WRITE or READDIR: headers, a credential,
/// handles, attributes and names.
pub const COMPOUND_BYTES: u32 = 4096;

/// Most bytes of the reply to a COMPOUND that must not be executed twice. The server caches it for
/// a retry; it holds the attributes of two objects and a handle.
pub const KEPT_REPLY_BYTES: u32 = 4096;

/// Slots of the backchannel: most callbacks that the server may send at once.
pub const CALLBACK_SLOTS: u32 = 16;

/// Most bytes of a callback, and of its reply.
pub const CALLBACK_BYTES_MAX: u32 = 4096;

/// Most connections to one server (`nconnect`): as many as Linux's client makes.
pub const CONNECTIONS_MAX: usize = 16;

/// Most events that wait to be polled; a full queue drops the oldest. Each delegation can cause one
/// recall and one loss.
pub const EVENTS_MAX: usize = 65_536;

/// Most callers, by their credentials, that are remembered at once; a multi-user machine has
/// hundreds.
pub const CALLERS_MAX: usize = 4096;

/// Objects whose last user is remembered, in eight bytes each. Verbs on others use the mount's
/// owner.
pub const HINTS: usize = 8192;

/// Most bytes of a page of a directory.
pub const LISTING_BYTES: u32 = 64 << 10;

/// Directories whose cookie verifier is remembered; a further one displaces another.
pub const VERIFIERS: usize = 1024;

/// Most names of extended attributes of one object that are accepted; Linux bounds their list to 64
/// KiB.
pub const XATTR_NAMES_MAX: usize = 65_536;

/// Most files with state at the server. Beyond it, READ and WRITE without an open use the anonymous
/// stateid.
pub const OPENS_MAX: usize = 65_536;

/// Most byte-range locks over NFS 3: after a restart of the server they are reclaimed one by one.
pub const LOCKS_MAX: usize = 16_384;

/// Most delegations; one takes some hundred bytes here and at the server.
pub const DELEGATIONS_MAX: usize = 16_384;

/// Most operations of one callback: CB_SEQUENCE and few others. The limit is sent to the server in
/// CREATE_SESSION.
pub const CALLBACK_OPERATIONS_MAX: u32 = 8;

/// Most bytes of written data that the server may still lose in a restart. Above it, the file with
/// most of it is committed first.
pub const UNSTABLE_BYTES_MAX: usize = 32 << 20;

/// Pause before a COMMIT that timed out is sent again; the timeout itself took seconds.
pub(crate) const COMMIT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Longest wait for a reply of the portmapper, or of a lock manager at a port of its own, before
/// its port is looked up again. It is short beside the grace period of a server, which is usually
/// 90 seconds.
pub(crate) const PROGRAM_PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// Most notifications of delegated directories that wait to be applied. They are applied before
/// each use of such a directory; if they exceed the limit, the delegation is given back.
pub const NOTICES_MAX: usize = 4096;

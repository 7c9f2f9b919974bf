//! Every bound of this crate, with its reason.

/// Largest reply that is expected, in bytes: a READ of 1 MiB and its header.
pub const REPLY_BYTES_MAX: usize = (1 << 20) + 4096;

/// Longest a server may stay silent, in seconds, before it is given up.
pub const SILENCE_SECONDS_MAX: u32 = 20;

/// Most bytes of a record that is received: a READ of 1 MiB, or a listing, and what stands around
/// them. Longer ones end the connection.
pub const RECORD_BYTES_MAX: usize = (1 << 20) + (64 << 10);

/// Most fragments of one record that is received; servers send one or a few.
pub const FRAGMENTS_MAX: usize = 1024;

/// Most bytes of calls that were made and are not answered, and of calls that wait to be sent. A
/// server that does not answer holds so much of this client's memory; threads with more calls wait.
pub const IN_FLIGHT_BYTES_MAX: usize = 32 << 20;

/// Slots that are asked for: as many as Linux's client asks for.
pub const SLOTS_WANTED: u32 = 64;

/// Slots that are used at most, whatever a server grants later.
pub const SLOTS_MAX: u32 = 256;

/// Most operations of a COMPOUND that are asked for: the longest here has a dozen.
pub const OPERATIONS_MAX: u32 = 32;

/// Bytes of a COMPOUND beside the data of its READ, WRITE or READDIR: headers, a credential,
/// handles, attributes and names.
pub const COMPOUND_BYTES: u32 = 4096;

/// Most bytes of the reply to a COMPOUND that must not be done twice, which the server keeps for a
/// retry: attributes of two objects and a handle.
pub const KEPT_REPLY_BYTES: u32 = 4096;

/// Slots of the back channel: callbacks that the server may have under way.
pub const CALLBACK_SLOTS: u32 = 16;

/// Most bytes of a callback, and of the answer to one.
pub const CALLBACK_BYTES_MAX: u32 = 4096;

/// Most connections to one server (`nconnect`): as many as Linux's client makes.
pub const CONNECTIONS_MAX: usize = 16;

/// Most events that wait for the code that looks after delegations. Each delegation can cause one
/// recall and one loss; what finds no room is given back or counted as lost at once.
pub const EVENTS_MAX: usize = 65_536;

/// Most callers, by their credentials, that are remembered at once; a multi-user machine has
/// hundreds.
pub const CALLERS_MAX: usize = 4096;

/// Objects of which the last user is remembered: eight bytes each. For others the owner of the
/// mount stands in.
pub const HINTS: usize = 8192;

/// Most bytes of a page of a directory that are asked for at once.
pub const LISTING_BYTES: u32 = 64 << 10;

/// Directories of which the cookie verifier is remembered; one more displaces one.
pub const VERIFIERS: usize = 1024;

/// Most names of extended attributes of one object that are believed; their list is bounded by 64
/// KiB on Linux.
pub const XATTR_NAMES_MAX: usize = 65_536;

/// Most files with state at the server. Beyond it files that callers only read or write are not
/// opened for them.
pub const OPENS_MAX: usize = 65_536;

/// Most byte-range locks that are held by NFS 3: they are taken again, one by one, after a restart
/// of the server.
pub const LOCKS_MAX: usize = 16_384;

/// Most delegations; one takes some hundred bytes here and at the server.
pub const DELEGATIONS_MAX: usize = 16_384;

/// Most operations of one callback: CB_SEQUENCE and what it is about. They are told to the server
/// when a session is made.
pub const CALLBACK_OPERATIONS_MAX: u32 = 8;

/// Most bytes of data that was written and that the server may lose in a restart. When there is
/// more, the file with most of it is committed first.
pub const UNSTABLE_BYTES_MAX: usize = 32 << 20;

/// Pause before a COMMIT that was not answered in time is sent again; it has waited for seconds.
pub(crate) const COMMIT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Longest an answer of the portmapper, or of the lock manager at a port of its own, is waited for
/// before its port is looked up again. A server that has restarted lets clients reclaim for 90
/// seconds at least.
pub(crate) const PROGRAM_PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// Most changes of delegated directories that wait until they are taken. They are taken before each
/// use of such a directory; if nobody uses it, its delegation is given back.
pub const NOTICES_MAX: usize = 4096;

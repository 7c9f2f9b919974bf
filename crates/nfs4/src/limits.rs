//! The bounds of this crate, with their reasons.

use comity_proto::nfs4::{DATA_BYTES_MAX, Verifier4};

/// Most operations of one COMPOUND. The Linux client sends at most nine; some clients send one
/// LOOKUP for each component of a path. A longer COMPOUND would keep a thread busy for long.
pub const OPERATIONS_MAX: u32 = 128;

/// Most bytes of one READ or WRITE. The Linux client asks for at most this many.
pub const TRANSFER_BYTES_MAX: u32 = DATA_BYTES_MAX;

/// Most bytes of the reply to a COMPOUND in 4.0: a READ of the largest size, and the other results.
/// A session may agree on fewer.
pub const REPLY_BYTES_MAX: usize = TRANSFER_BYTES_MAX as usize + (64 << 10);

/// Bytes that must be free in a reply before an operation that changes something begins. No result
/// of such an operation is longer, so every change that is made can be reported.
pub const CHANGING_REPLY_BYTES: usize = 512;

/// Fewest bytes of a READ that is answered with a reference to the file's bytes; see the limit of
/// the same name of `comity-nfs3`.
pub const BY_REFERENCE_FROM_BYTES: u32 = 32 << 10;

/// Most bytes of an owner in LOCK4denied. Linux has room in the reply for owners of its own length
/// since version 6.12.23 and 6.15; a longer one is an I/O error to the program that wants the lock.
pub const DENIED_OWNER_BYTES_MAX: usize = 20;

/// Most bytes of a synchronous COPY, about a second's work of a disk. The client sends another COPY
/// for the rest.
pub const COPY_BYTES_MAX: u64 = 256 << 20;

/// Fewest bytes of a COPY that becomes asynchronous, if the client allows that. To copy them in the
/// page cache takes several times as long as a callback.
pub const COPY_LONG_BYTES: u64 = 16 << 20;

/// Most bytes of a piece of an asynchronous copy. Other work may come between two pieces, and the
/// rights are checked again. A piece takes some milliseconds in memory, and a tenth of a second on
/// a disk.
pub const COPY_PIECE_BYTES_MAX: u64 = 8 << 20;

/// Most pieces in the result of one READ_PLUS. Each piece costs two system calls.
pub const CONTENTS_MAX: u32 = 128;

/// Most bytes of one READDIR result; see the limit of the same name of `comity-nfs3`.
pub const LISTING_BYTES_MAX: u32 = 256 << 10;

/// Seconds after which a callback without a reply counts as lost; a third of the lease if that is
/// less. A client replies within milliseconds. If its network stalls, the server can try a few
/// times within a lease.
pub const CALLBACK_SECONDS: u64 = 10;

/// Seconds until a failed recall is sent again. The client may not know the delegation yet, because
/// the reply that grants it is still on its way.
pub const CALLBACK_RETRY_SECONDS: u64 = 1;

/// Most unanswered probes of one client. A client has a few sessions, and some of its connections
/// may be dead. A client can cause a probe with each call.
pub const PROBES_MAX: u32 = 8;

/// Bytes after SEQUENCE that are hashed to recognize a retry. A hash of all of a large WRITE would
/// cost as much as the WRITE.
pub const DIGEST_BYTES: usize = 512;

/// Bytes of an RPC reply before the results, which a session's limits include (RFC 8881, 18.36.3).
pub const REPLY_HEADER_BYTES: usize = 24;

/// Fewest bytes of an RPC call before the arguments, with an empty credential; a session's limits
/// include them.
pub const CALL_HEADER_BYTES_MIN: usize = 40;

/// Most bytes of a COMPOUND of 4.0 that are searched for operations that must not be executed
/// twice. A longer COMPOUND counts as if it contained one. Filehandles at the front and the data of
/// WRITEs do not count.
pub const REPEAT_SCAN_BYTES: usize = 1024;

/// The verifier of all cookies. It is constant because cookies stay valid when the directory
/// changes.
pub(crate) const COOKIEVERF: Verifier4 = [0; 8];

/// Bytes of a CB_NOTIFY beside its notifications: the head of the call with its credential,
/// CB_SEQUENCE, stateid and handle.
pub(crate) const CALLBACK_HEAD_BYTES: usize = 640;

/// Fewest bytes of notifications that a client must take in one call to get any. The longest
/// notification has three names of 255 bytes and a handle.
pub(crate) const NOTICE_BYTES_MIN: usize = 1280;

//! Every bound of this crate, with its reason.

use comity_proto::nfs4::DATA_BYTES_MAX;

/// Most operations of one COMPOUND. The Linux client sends nine at most; a path is walked by one
/// for each component by some clients. Beyond this one call would keep a worker for long.
pub const OPERATIONS_MAX: u32 = 128;

/// Most bytes of one READ or WRITE: what the Linux client asks for at most.
pub const TRANSFER_BYTES_MAX: u32 = DATA_BYTES_MAX;

/// Most bytes of the reply to a COMPOUND in 4.0; a session may agree on less. One READ of the
/// largest size and what else there is in a COMPOUND.
pub const REPLY_BYTES_MAX: usize = TRANSFER_BYTES_MAX as usize + (64 << 10);

/// Bytes that must be left in a reply before an operation that changes something is begun: no
/// result of one is longer. Then none is done whose result cannot be told.
pub const CHANGING_REPLY_BYTES: usize = 512;

/// From how many bytes on a READ may answer with a stretch of the file itself; see the limit of the
/// same name of `comity-nfs3`.
pub const BY_REFERENCE_FROM_BYTES: u32 = 32 << 10;

/// Most bytes of a COPY that is answered when it is done, about a second's work of a disk; the
/// client goes on behind them.
pub const COPY_BYTES_MAX: u64 = 256 << 20;

/// From how many bytes on a COPY is answered before it is done, if the client lets it be: what a
/// page cache copies in the time that calling the client back takes, several times over.
pub const COPY_LONG_BYTES: u64 = 16 << 20;

/// Most bytes of a copy that are made at a time before others have their turn, and before its
/// rights are looked at again: some milliseconds' work of memory, a tenth of a second's of a disk.
pub const COPY_PIECE_BYTES_MAX: u64 = 8 << 20;

/// Most pieces of one READ_PLUS: each costs two system calls.
pub const CONTENTS_MAX: u32 = 128;

/// Most bytes of one page of a directory; see the limit of the same name of `comity-nfs3`.
pub const LISTING_BYTES_MAX: u32 = 256 << 10;

/// Seconds after which a callback that nobody has answered counts as lost, or a third of a lease if
/// that is less. A client answers within milliseconds; one whose network stalls gets a few tries
/// within its lease.
pub const CALLBACK_SECONDS: u64 = 10;

/// Seconds until a recall is tried again that could not be said or was not understood: the answer
/// that tells the client of its delegation may be under way still.
pub const CALLBACK_RETRY_SECONDS: u64 = 1;

/// Probes of one client that are not answered yet: it has a few sessions, and connections that may
/// be dead. A client can ask for one with each call.
pub const PROBES_MAX: u32 = 8;

/// Bytes of a request by which it is known if it comes again: SEQUENCE and the beginning of what
/// follows. All of a large WRITE would cost as much as writing it.
pub const DIGEST_BYTES: usize = 512;

/// Bytes of an RPC reply before the results: a session's limits count them (RFC 8881, 18.36.3).
pub const REPLY_HEADER_BYTES: usize = 24;

/// The fewest bytes of an RPC call before the arguments, counted likewise: without a credential.
pub const CALL_HEADER_BYTES_MIN: usize = 40;

/// Most bytes of a COMPOUND of 4.0 that are looked through for operations that must not be done
/// twice; a longer one counts as if it had some. The data of WRITEs and handles in front do not
/// count.
pub const REPEAT_SCAN_BYTES: usize = 1024;

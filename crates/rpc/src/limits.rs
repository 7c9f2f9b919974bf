//! Every bound of this crate, with its reason.

/// Longest body of a credential or verifier in bytes (RFC 5531, 8.2).
pub const AUTH_BYTES_MAX: u32 = 400;

/// Most supplementary groups in AUTH_SYS (RFC 5531, appendix A).
pub const AUTH_SYS_GROUPS_MAX: u32 = 16;

/// Longest machine name in AUTH_SYS in bytes (RFC 5531, appendix A).
pub const MACHINE_NAME_BYTES_MAX: u32 = 255;

/// Most fragments of one record. A client library with small send buffers cuts a WRITE of 1 MiB
/// into pieces of 2 KB (pynfs) or more; a client that sends far more fragments wants to overload
/// the server.
pub const RECORD_FRAGMENTS_MAX: u32 = 1024;

/// Most bytes at the start of a record that the replay cache looks at to tell calls apart: the
/// header, and the arguments of every call it remembers.
pub const REPLAY_DIGEST_BYTES: usize = 1024;

/// Most remembered answers. A client retries after seconds; at 10,000 changing calls a second this
/// is the memory of about two.
pub const REPLAY_ENTRIES_MAX: usize = 16_384;

/// Most bytes of calls by the server (callbacks) that are queued for one peer. A recall has less
/// than 500 bytes. A client that reads none of hundreds of recalls loses the delegations in time.
pub const BACKCHANNEL_BYTES_MAX: usize = 128 << 10;

/// Most bytes of remembered answers: an answer to a call that changes something has 120 to 300.
pub const REPLAY_BYTES_MAX: usize = 8 << 20;

/// Seconds for which an answer is remembered. Over TCP clients try again after 60 s, and at once
/// when their connection breaks.
pub const REPLAY_SECONDS_MAX: u32 = 180;

/// Longest answer that is remembered, in bytes; answers to calls that change something have less
/// than 400.
pub const REPLAY_ANSWER_BYTES_MAX: usize = 1024;

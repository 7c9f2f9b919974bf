//! Every bound of this crate, with its reason.

/// Longest body of a credential or verifier in bytes (RFC 5531, 8.2).
pub const AUTH_BYTES_MAX: u32 = 400;

/// Most supplementary groups in AUTH_SYS (RFC 5531, appendix A).
pub const AUTH_SYS_GROUPS_MAX: u32 = 16;

/// Longest machine name in AUTH_SYS in bytes (RFC 5531, appendix A).
pub const MACHINE_NAME_BYTES_MAX: u32 = 255;

/// Most fragments of one record. A client library with small send buffers cuts a WRITE of 1 MiB
/// into pieces of 2 KB (pynfs) or more; far more is somebody who wants to keep us busy.
pub const RECORD_FRAGMENTS_MAX: u32 = 1024;

/// Most bytes at the start of a record that the replay cache looks at to tell calls apart: the
/// header, and the arguments of every call it remembers.
pub const REPLAY_DIGEST_BYTES: usize = 1024;

/// Most remembered answers. A client retries after seconds; at 10,000 changing calls a second this
/// is the memory of about two.
pub const REPLAY_ENTRIES_MAX: usize = 16_384;

/// Most bytes of our own calls that wait for one peer. A recall is below 500; a client that takes
/// none of hundreds will lose what they are about.
pub const BACKCHANNEL_BYTES_MAX: usize = 128 << 10;

/// Most bytes of remembered answers: those of calls that change something have 120 to 300.
pub const REPLAY_BYTES_MAX: usize = 8 << 20;

/// Seconds for which an answer is remembered. Over TCP clients try again after 60 s, and at once
/// when their connection breaks.
pub const REPLAY_SECONDS_MAX: u32 = 180;

/// Longest answer that is remembered, in bytes; those of the calls in question are below 400.
pub const REPLAY_ANSWER_BYTES_MAX: usize = 1024;

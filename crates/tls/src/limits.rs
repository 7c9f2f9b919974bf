//! Every bound of this crate, with its reason.

/// Longest certificate in bytes. One with a key of RSA 8192 and a dozen names has 3 KiB; one with
/// ML-DSA-87, the longest signature that is standardized, below 9 KiB.
pub const CERTIFICATE_BYTES_MAX: usize = 16 << 10;

/// Most names of one certificate that are looked at. Hosts have a few; each takes memory for as
/// long as the connection lasts.
pub const NAMES_MAX: usize = 64;

/// Most supplementary groups of a user in a certificate. AUTH_SYS carries 16 (RFC 5531, appendix
/// A), a file system takes more; a certificate of [`CERTIFICATE_BYTES_MAX`] would hold thousands.
pub const GROUPS_MAX: usize = 1024;

/// Most certificate authorities of a configuration. The chain of a peer is checked below each.
pub const AUTHORITIES_MAX: usize = 64;

/// Longest file with certificates or a key in bytes: room for [`AUTHORITIES_MAX`] of them in PEM.
pub const FILE_BYTES_MAX: u64 = 2 << 20;

/// Most parts of an object identifier: those of certificates have about ten.
pub const OBJECT_ID_PARTS_MAX: usize = 32;

/// Most bytes of a peer in a handshake: its hello (below 2 KiB with a hybrid key exchange), and a
/// chain of three certificates with ML-DSA-87 or of a dozen with RSA.
pub const HANDSHAKE_BYTES_MAX: usize = 32 << 10;

/// Most KeyUpdates that a peer sends without data between them. Each costs the server the
/// derivation of two keys; a client that heeds the limits of its cipher sends one in 2^24
/// records.
pub const KEY_UPDATES_MAX: u32 = 16;

/// Most records without data that a peer sends one after the other. They are allowed (RFC 8446,
/// 5.1), cost us a decryption each, and bring nothing.
pub const EMPTY_RECORDS_MAX: u32 = 16;

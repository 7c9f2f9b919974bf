//! The limits of this crate, with their reasons.

/// Longest certificate in bytes. One with an RSA key of 8192 bits and a dozen names has 3 KiB; one
/// with ML-DSA-87, the longest standardized signature, less than 9 KiB.
pub const CERTIFICATE_BYTES_MAX: usize = 16 << 10;

/// Most names of one certificate that are read. Hosts have a few, and each takes memory for the
/// life of the connection.
pub const NAMES_MAX: usize = 64;

/// Most supplementary groups of a user in a certificate. AUTH_SYS carries 16 (RFC 5531, appendix
/// A), and file systems accept more; a certificate of [`CERTIFICATE_BYTES_MAX`] could hold
/// thousands.
pub const GROUPS_MAX: usize = 1024;

/// Most configured certificate authorities. The chain of a peer is checked against each.
pub const AUTHORITIES_MAX: usize = 64;

/// Longest file with certificates or a key in bytes: room for [`AUTHORITIES_MAX`] certificates in
/// PEM.
pub const FILE_BYTES_MAX: u64 = 2 << 20;

/// Most parts of an object identifier: those of certificates have about ten.
pub const OBJECT_ID_PARTS_MAX: usize = 32;

/// Most bytes from a peer in a handshake: its hello (less than 2 KiB with a hybrid key exchange),
/// and a chain of three certificates with ML-DSA-87 or a dozen with RSA.
pub const HANDSHAKE_BYTES_MAX: usize = 32 << 10;

/// Most KeyUpdates that a peer may send without data between them. Each costs the server the
/// derivation of two keys; a client needs only one in 2^24 records.
pub const KEY_UPDATES_MAX: u32 = 16;

/// Most consecutive records without data from a peer. They are allowed (RFC 8446, 5.1), but each
/// costs a decryption and carries nothing.
pub const EMPTY_RECORDS_MAX: u32 = 16;

//! Every bound of this crate, with its reason.

/// Longest name in bytes: what Linux file systems take (`NAME_MAX`).
pub const NAME_BYTES_MAX: usize = 255;

/// Longest target of a symbolic link in bytes: `PATH_MAX` with its terminating zero left out.
pub const LINK_TARGET_BYTES_MAX: usize = 4095;

/// Longest backend handle in bytes. An NFSv3 handle has at most 64 bytes (RFC 1813, 2.4); the
/// export's header (version, export id, MAC) takes 16 of them.
pub const HANDLE_BYTES_MAX: usize = 48;

/// Longest name in bytes that another server may give an object: the limit of NFSv4 filehandles
/// (NFS4_FHSIZE; RFC 8881, 3.1).
pub const LONG_HANDLE_BYTES_MAX: usize = 128;

/// Most long names that a [`crate::HandleTable`] remembers by default: about 64 MiB.
pub const LONG_HANDLES_MAX: usize = 262_144;

/// Most supplementary groups of one caller: what the Linux kernel takes (`NGROUPS_MAX`). AUTH_SYS
/// carries 16; the rest can come from the server's own group database (`manage_gids`).
pub const GROUPS_MAX: usize = 65_536;

/// Most entries of an ACL: what fits into the 64 KiB of an extended attribute.
pub const ACL_ENTRIES_MAX: usize = 8_191;

/// Longest value of an extended attribute in bytes (`XATTR_SIZE_MAX`).
pub const XATTR_BYTES_MAX: usize = 65_536;

/// Most events that a recorder keeps until they are taken: many more than one test makes.
pub const EVENTS_MAX: usize = 65_536;

/// Most changed objects that wait for the engine. It takes them after each call, and each of the
/// calls that are served at once changes few.
pub const CHANGED_OBJECTS_MAX: usize = 4096;

/// Largest numbers of a device: 12 and 20 bits in Linux. A larger number that is truncated would
/// name another device.
pub const DEVICE_MAJOR_MAX: u32 = 0xfff;
/// See [`DEVICE_MAJOR_MAX`].
pub const DEVICE_MINOR_MAX: u32 = 0xf_ffff;

/// Buckets of a latency histogram, each twice as wide as the one before, from a microsecond to four
/// seconds: a longer time is a fault and not a latency.
pub const LATENCY_BUCKETS: usize = 24;

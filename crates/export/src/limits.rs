//! Every bound of this crate, with its reason.

/// Longest configuration file in bytes: longer than any written by hand, and enough for range maps
/// of 100,000 entries.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Longest entry of an exports file in bytes, continuation lines joined, so that a missing quote is
/// noticed before the whole file is one line.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Most files of one directory of exports.
pub const FILES_MAX: usize = 1_024;

/// Most exports: each has a backend with open files.
pub const EXPORTS_MAX: usize = 4_096;

/// Most lists of default options in one line: all of them are examined for each of its clients.
pub const DEFAULTS_MAX: usize = 16;

/// Most client entries of one file: all of them are matched against an unknown peer.
pub const CLIENTS_MAX: usize = 65_536;

/// Most diagnostics that are kept: nobody reads more, and a file of another format has one for each
/// line.
pub const DIAGNOSTICS_MAX: usize = 1_000;

/// Most names of users, and of groups, of a domain: each takes some hundred bytes.
pub const OWNERS_MAX: usize = 262_144;

/// Longest host name or pattern in bytes (RFC 1035, 2.3.4, in text).
pub const NAME_BYTES_MAX: usize = 253;

/// Most servers with which this one exchanges exports.
pub const PEER_SERVERS_MAX: usize = 64;

/// Most locations of the files of an export, and most servers of one location: a Linux client looks
/// at no more (`NFS4_FS_LOCATIONS_MAXENTRIES`, `NFS4_FS_LOCATION_MAXSERVERS`).
pub const LOCATIONS_MAX: usize = 10;
/// See [`LOCATIONS_MAX`].
pub const LOCATION_SERVERS_MAX: usize = 10;

/// Most hosts of one netgroup.
pub const NETGROUP_HOSTS_MAX: usize = 65_536;

/// Deepest nesting of netgroups.
pub const NETGROUP_DEPTH_MAX: usize = 32;

/// Most addresses whose names are kept: each takes a few hundred bytes.
pub const NAMES_MAX: usize = 16_384;

/// Seconds for which the names of an address stay valid.
pub const NAME_SECONDS: u64 = 600;

/// Fewest seconds between a failed look-up of an address and the next.
pub const NAME_FAILURE_SECONDS: u64 = 10;

/// Seconds for which a name stays valid if it cannot be looked up again: an outage of the name
/// server must not shut out clients that were admitted shortly before.
pub const NAME_STALE_SECONDS: u64 = 3600;

/// Most threads for look-ups of each plan. A name server that never answers occupies one for some
/// 20 s for each address.
pub const LOOKUP_THREADS_MAX: usize = 32;

/// Stack of a look-up thread in bytes: the resolver of glibc takes up to 64 KiB.
pub const LOOKUP_STACK_BYTES: usize = 256 << 10;

/// Most addresses that wait for a look-up thread. Calls from further addresses are retried each
/// second.
pub const LOOKUPS_WAITING_MAX: usize = 64;

/// Most addresses of one network (a /64 of IPv6) in the queue or being looked up: a host with one
/// address of the network may use all of them.
pub const LOOKUPS_PER_ASKER_MAX: usize = 4;

/// Pause after a failed look-up of an address, as a multiple of the time it took: an address whose
/// name server never answers occupies a tenth of a thread.
pub const LOOKUP_PAUSE: u32 = 10;

/// Most entries of a cloaked directory that are examined for one page of a listing that has shown
/// something: 20 ms, and more than fit into a page with attributes if all of them are visible.
pub const LISTING_ENTRIES_MAX: usize = 4_096;

/// Most entries of a directory that are counted to explain a listing, so that the server is not
/// kept busy.
pub const EXPLAINED_ENTRIES_MAX: usize = 100_000;

/// Most resolved callers that a peer keeps: the users of one client share a connection.
pub const RESOLVED_CALLERS_MAX: usize = 32;

/// Number of look-ups without an answer after which the other hosts of a configuration are skipped:
/// a dead name server delays each of them.
pub const LOOKUPS_FAILED_MAX: usize = 3;

/// Most threads that may be configured: more than machines have processors.
pub const THREADS_MAX: usize = 1024;

/// Time for which a refusal is cached if the name of the peer may still admit it: a decision
/// examines all exports, and an unknown peer may send many calls.
pub(crate) const REFUSAL: std::time::Duration = std::time::Duration::from_secs(1);

/// Most notifications of a directory that a client has not acknowledged, where the export does not
/// say (`dir_delegations=...:notifications=N`). Changes of names come in bursts of some tens.
pub const NOTIFICATIONS_DEFAULT: u32 = 64;

/// The greatest number that an export may say. Each takes about 200 bytes for each holder of each
/// directory.
pub const NOTIFICATIONS_MAX: u32 = 1024;

/// Most seconds from a change of attributes of a file to the notification of clients that an export
/// may say (`dir_delegations=...:delay=SECONDS`): as long as clients believe attributes at most
/// without notifications (`acregmax`).
pub const NOTIFICATION_DELAY_MAX: u32 = 60;

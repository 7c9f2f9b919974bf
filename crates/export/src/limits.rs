//! Every bound of this crate, with its reason.

/// Longest configuration file in bytes: more than any that people write, and room for range maps of
/// 100,000 entries.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Longest entry of an exports file in bytes, continuation lines joined: a missing end is found
/// before the whole file is one line.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Most files of one directory of exports.
pub const FILES_MAX: usize = 1_024;

/// Most exports: each keeps a backend with open files.
pub const EXPORTS_MAX: usize = 4_096;

/// Most lists of default options in one line: all of them are gone through for each of its clients.
pub const DEFAULTS_MAX: usize = 16;

/// Most client entries of one file: each is looked at when a stranger comes.
pub const CLIENTS_MAX: usize = 65_536;

/// Most diagnostics that are kept: nobody reads more, and every line of a foreign file has one.
pub const DIAGNOSTICS_MAX: usize = 1_000;

/// Most names of users of a domain, and so of groups: each is kept, some hundred bytes.
pub const OWNERS_MAX: usize = 262_144;

/// Longest host name or pattern in bytes (RFC 1035, 2.3.4, in text).
pub const NAME_BYTES_MAX: usize = 253;

/// Most hosts of one netgroup.
pub const NETGROUP_HOSTS_MAX: usize = 65_536;

/// Deepest nesting of netgroups.
pub const NETGROUP_DEPTH_MAX: usize = 32;

/// Most addresses whose names are kept: each a few hundred bytes.
pub const NAMES_MAX: usize = 16_384;

/// Seconds for which the names of an address stay valid.
pub const NAME_SECONDS: u64 = 600;

/// Fewest seconds between a failed look-up of an address and the next.
pub const NAME_FAILURE_SECONDS: u64 = 10;

/// Seconds for which a name stays known while it cannot be looked up again: an outage of the
/// name server must not keep clients out that were let in shortly before.
pub const NAME_STALE_SECONDS: u64 = 3600;

/// Most threads that look names up, for each plan. A name server that never answers holds one for
/// some 20 s for each address.
pub const LOOKUP_THREADS_MAX: usize = 32;

/// Stack of a look-up thread in bytes: the resolver of glibc takes up to 64 KiB.
pub const LOOKUP_STACK_BYTES: usize = 256 << 10;

/// Most addresses that wait for a look-up thread. The calls of further ones are tried again each
/// second.
pub const LOOKUPS_WAITING_MAX: usize = 64;

/// Most addresses of one network (a /64 of IPv6) that wait or are looked up: whoever has one of
/// them may have all.
pub const LOOKUPS_PER_ASKER_MAX: usize = 4;

/// After a look-up that failed, the address is left alone for so many times as long as that took:
/// an address whose name server never answers holds a tenth of a thread.
pub const LOOKUP_PAUSE: u32 = 10;

/// Most entries of a cloaked directory that are looked at for one page of a listing that has shown
/// something: 20 ms, and more than fit into a page with attributes if all of them are visible.
pub const LISTING_ENTRIES_MAX: usize = 4_096;

/// Most entries of a directory that are counted to explain a listing: nobody asks for more, and a
/// server that is asked has other things to do.
pub const EXPLAINED_ENTRIES_MAX: usize = 100_000;

/// Most resolved callers that a peer keeps: the users of one client take turns on a connection.
pub const RESOLVED_CALLERS_MAX: usize = 32;

/// After how many look-ups without an answer the other hosts of a configuration are not asked for:
/// a dead name server takes its time for each.
pub const LOOKUPS_FAILED_MAX: usize = 3;

/// Threads that may be asked for: more than machines have processors.
pub const THREADS_MAX: usize = 1024;

/// Time for which a refusal is kept where the name of the peer may still admit it: a judgement
/// looks at all exports, and a stranger sends calls as fast as it likes.
pub(crate) const REFUSAL: std::time::Duration = std::time::Duration::from_secs(1);

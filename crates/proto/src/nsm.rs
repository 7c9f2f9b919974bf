//! The status monitor of NFSv3's locks: NSM version 1 (X/Open XNFS, chapter 11), by which hosts
//! tell each other that they have restarted.
#![allow(missing_docs)]

use comity_xdr::{Decode, Encode, Opaque};

/// Program number.
pub const PROGRAM: u32 = 100_024;
/// The only version.
pub const VERSION: u32 = 1;

/// Procedure numbers of the calls between hosts; other procedures are only for programs on the same
/// host.
pub mod procedure {
    pub const NULL: u32 = 0;
    pub const STAT: u32 = 1;
    pub const NOTIFY: u32 = 6;
}

/// Longest name of a host in bytes (SM_MAXSTRLEN).
pub const NAME_BYTES_MAX: u32 = 1024;

/// The name of a host, as given by itself or another.
pub type HostName<'a> = Opaque<'a, NAME_BYTES_MAX>;

/// `stat_chge`: a host has restarted. Its state number rises with each change and is odd while it
/// is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct StatChge<'a> {
    pub mon_name: HostName<'a>,
    pub state: i32,
}

/// The reply to the question whether a host is monitored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Res {
    Succ = 0,
    Fail = 1,
}

/// `sm_stat_res`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SmStatRes {
    pub res: Res,
    /// The state number of the replying host.
    pub state: i32,
}

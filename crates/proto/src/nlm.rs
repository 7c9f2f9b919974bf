//! The lock manager of NFSv3: NLM version 4 (RFC 1813, appendix II; X/Open XNFS, chapter 10).
#![allow(missing_docs)]

use comity_xdr::{Decode, Encode, Opaque};

/// Program number.
pub const PROGRAM: u32 = 100_021;
/// The version that goes with NFSv3.
pub const VERSION: u32 = 4;

/// Procedure numbers. Calls of those ending in `_MSG` are answered by a call of the one ending in
/// `_RES`.
pub mod procedure {
    pub const NULL: u32 = 0;
    pub const TEST: u32 = 1;
    pub const LOCK: u32 = 2;
    pub const CANCEL: u32 = 3;
    pub const UNLOCK: u32 = 4;
    pub const GRANTED: u32 = 5;
    pub const TEST_MSG: u32 = 6;
    pub const LOCK_MSG: u32 = 7;
    pub const CANCEL_MSG: u32 = 8;
    pub const UNLOCK_MSG: u32 = 9;
    pub const GRANTED_MSG: u32 = 10;
    pub const TEST_RES: u32 = 11;
    pub const LOCK_RES: u32 = 12;
    pub const CANCEL_RES: u32 = 13;
    pub const UNLOCK_RES: u32 = 14;
    pub const GRANTED_RES: u32 = 15;
    pub const SHARE: u32 = 20;
    pub const UNSHARE: u32 = 21;
    pub const NM_LOCK: u32 = 22;
    pub const FREE_ALL: u32 = 23;
}

/// Longest name and object in bytes (LM_MAXSTRLEN, MAXNETOBJ_SZ).
pub const BYTES_MAX: u32 = 1024;

/// Bytes that only their maker interprets: `netobj`.
pub type Netobj<'a> = Opaque<'a, BYTES_MAX>;

/// The name by which a host identifies itself.
pub type CallerName<'a> = Opaque<'a, BYTES_MAX>;

/// The status of a call: `nlm4_stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Nlm4Stats {
    Granted = 0,
    Denied = 1,
    DeniedNolocks = 2,
    Blocked = 3,
    DeniedGracePeriod = 4,
    Deadlck = 5,
    Rofs = 6,
    StaleFh = 7,
    Fbig = 8,
    Failed = 9,
}

/// `nlm4_holder`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Holder<'a> {
    pub exclusive: bool,
    pub svid: i32,
    pub oh: Netobj<'a>,
    pub l_offset: u64,
    pub l_len: u64,
}

/// `nlm4_lock`: owner, file and bytes of a lock; a length of 0 reaches to the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Lock<'a> {
    pub caller_name: CallerName<'a>,
    pub fh: Netobj<'a>,
    pub oh: Netobj<'a>,
    pub svid: i32,
    pub l_offset: u64,
    pub l_len: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Testargs<'a> {
    pub cookie: Netobj<'a>,
    pub exclusive: bool,
    pub alock: Nlm4Lock<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Lockargs<'a> {
    pub cookie: Netobj<'a>,
    pub block: bool,
    pub exclusive: bool,
    pub alock: Nlm4Lock<'a>,
    pub reclaim: bool,
    /// The state number of the client's status monitor.
    pub state: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Cancargs<'a> {
    pub cookie: Netobj<'a>,
    pub block: bool,
    pub exclusive: bool,
    pub alock: Nlm4Lock<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Unlockargs<'a> {
    pub cookie: Netobj<'a>,
    pub alock: Nlm4Lock<'a>,
}

/// `nlm4_share`: a DOS share reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Share<'a> {
    pub caller_name: CallerName<'a>,
    pub fh: Netobj<'a>,
    pub oh: Netobj<'a>,
    /// The access to deny to others: bit 0 read, bit 1 write (`fsh4_mode`).
    pub mode: u32,
    /// The access of the open: bit 0 read, bit 1 write (`fsh4_access`).
    pub access: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Shareargs<'a> {
    pub cookie: Netobj<'a>,
    pub share: Nlm4Share<'a>,
    pub reclaim: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Res<'a> {
    pub cookie: Netobj<'a>,
    pub stat: Nlm4Stats,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Shareres<'a> {
    pub cookie: Netobj<'a>,
    pub stat: Nlm4Stats,
    pub sequence: i32,
}

/// The head of the results of TEST; after DENIED a [`Nlm4Holder`] follows.
pub type Nlm4Testres<'a> = Nlm4Res<'a>;

/// `nlm4_notify`: a host has lost all its locks (FREE_ALL).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nlm4Notify<'a> {
    pub name: CallerName<'a>,
    pub state: i32,
}

//! Callbacks: calls that the server makes (RFC 7530, 15; RFC 8881, 20). Arguments encode, results
//! decode; both do both, so that tests can be clients.
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::{Bitmap4, NAME_BYTES_MAX, NfsFh4, Seqid4, Sessionid4, StateOwner4, Stateid4, Tag4};
use super::{NOTIFICATIONS_MAX, Notify4};

/// Version of the callback program, whichever number the client gave it: 4.0 and 4.1 alike.
pub const VERSION: u32 = 1;

pub mod procedure {
    pub const CB_NULL: u32 = 0;
    pub const CB_COMPOUND: u32 = 1;
}

pub mod operation {
    pub const CB_GETATTR: u32 = 3;
    pub const CB_RECALL: u32 = 4;
    pub const CB_LAYOUTRECALL: u32 = 5;
    pub const CB_NOTIFY: u32 = 6;
    pub const CB_PUSH_DELEG: u32 = 7;
    pub const CB_RECALL_ANY: u32 = 8;
    pub const CB_RECALLABLE_OBJ_AVAIL: u32 = 9;
    pub const CB_RECALL_SLOT: u32 = 10;
    pub const CB_SEQUENCE: u32 = 11;
    pub const CB_WANTS_CANCELLED: u32 = 12;
    pub const CB_NOTIFY_LOCK: u32 = 13;
    pub const CB_NOTIFY_DEVICEID: u32 = 14;
    pub const CB_OFFLOAD: u32 = 15;
}

/// The head of a CB_COMPOUND, before its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbCompoundHead<'a> {
    pub tag: Tag4<'a>,
    pub minorversion: u32,
    /// The number that a client of 4.0 gave in SETCLIENTID; otherwise 0.
    pub callback_ident: u32,
    pub operations: u32,
}

/// The head of the results. The status is any number that a client makes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbCompoundResultHead<'a> {
    pub status: u32,
    pub tag: Tag4<'a>,
    pub results: u32,
}

/// The head of each result; a body follows where there is one and the status is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbResultHead {
    pub operation: u32,
    pub status: u32,
}

/// `referring_call4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ReferringCall4 {
    pub sequenceid: Seqid4,
    pub slotid: u32,
}

/// `referring_call_list4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ReferringCallList4 {
    pub sessionid: Sessionid4,
    pub calls: Counted<ReferringCall4, 64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CbSequence4args {
    pub sessionid: Sessionid4,
    pub sequenceid: Seqid4,
    pub slotid: u32,
    pub highest_slotid: u32,
    pub cachethis: bool,
    pub referring_call_lists: Counted<ReferringCallList4, 16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbSequence4resok {
    pub sessionid: Sessionid4,
    pub sequenceid: Seqid4,
    pub slotid: u32,
    pub highest_slotid: u32,
    pub target_highest_slotid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbRecall4args<'a> {
    pub stateid: Stateid4,
    pub truncate: bool,
    pub fh: NfsFh4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbGetattr4args<'a> {
    pub fh: NfsFh4<'a>,
    pub attr_request: Bitmap4,
}

/// Attributes a client answers CB_GETATTR with: `change` and `size`, no more are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbGetattr4resok<'a> {
    pub attrmask: Bitmap4,
    pub attr_vals: Opaque<'a, NAME_BYTES_MAX>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbNotifyLock4args<'a> {
    pub fh: NfsFh4<'a>,
    pub lock_owner: StateOwner4<'a>,
}

/// Kinds of what CB_RECALL_ANY asks back, as numbers of its bitmap.
pub mod recall_any {
    pub const READ_DELEGATIONS: u32 = 0;
    pub const WRITE_DELEGATIONS: u32 = 1;
    pub const DIR_DELEGATIONS: u32 = 2;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbRecallAny4args {
    pub objects_to_keep: u32,
    pub type_mask: Bitmap4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbRecallSlot4args {
    pub target_highest_slotid: u32,
}

/// The head of the outcome of an asynchronous copy. A status follows: behind OK a
/// [`super::WriteResponse4`], behind another how many bytes were copied (u64).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbOffload4head<'a> {
    pub fh: NfsFh4<'a>,
    pub stateid: Stateid4,
}

/// The arguments of CB_NOTIFY_DEVICEID.
pub type CbNotifyDeviceid4args<'a> = Counted<Notify4<'a>, NOTIFICATIONS_MAX>;

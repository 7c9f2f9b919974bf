//! Callbacks: calls by the server (RFC 7530, 15; RFC 8881, 20). All types can be encoded and
//! decoded, so that tests can act as clients.
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::{Bitmap4, NAME_BYTES_MAX, NfsFh4, Seqid4, Sessionid4, StateOwner4, Stateid4, Tag4};
use super::{NOTIFICATIONS_MAX, Notify4};

/// Version of the callback program in 4.0 and 4.1, whatever program number the client chose.
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
    /// The number from the client's SETCLIENTID (4.0); otherwise 0.
    pub callback_ident: u32,
    pub operations: u32,
}

/// The head of the results. The status is a plain number, because a client may send any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbCompoundResultHead<'a> {
    pub status: u32,
    pub tag: Tag4<'a>,
    pub results: u32,
}

/// The head of each result; a body follows if the operation has one and the status is 0.
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

/// The result of CB_GETATTR: `change` and `size`, because the server asks for no others.
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

/// Kinds of state that CB_RECALL_ANY asks to return, as numbers of its bitmap.
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

/// The head of the outcome of an asynchronous copy. A status follows; after OK a
/// [`super::WriteResponse4`], after another status the number of bytes copied (u64).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbOffload4head<'a> {
    pub fh: NfsFh4<'a>,
    pub stateid: Stateid4,
}

/// The arguments of CB_NOTIFY_DEVICEID.
pub type CbNotifyDeviceid4args<'a> = Counted<Notify4<'a>, NOTIFICATIONS_MAX>;

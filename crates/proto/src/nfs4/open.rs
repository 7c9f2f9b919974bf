//! Opens (RFC 7530, 16.2, 16.16 to 16.19; RFC 8881, 18.2, 18.16 to 18.18).
#![allow(missing_docs)]

use comity_xdr::{Decode, Encode};

use super::{
    Bitmap4, ChangeInfo4, Component4, Fattr4, OpenDelegation4, OpenDelegationType4, Seqid4,
    StateOwner4, Stateid4, Verifier4,
};

/// Bits of `share_access` and `share_deny`, which have the same values.
pub mod share {
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const BOTH: u32 = 3;
    /// The mask of the want bits for delegations in `share_access` (4.1).
    pub const WANT_MASK: u32 = 0xff00;
    pub const WANT_NO_PREFERENCE: u32 = 0x0000;
    pub const WANT_READ_DELEG: u32 = 0x0100;
    pub const WANT_WRITE_DELEG: u32 = 0x0200;
    pub const WANT_ANY_DELEG: u32 = 0x0300;
    pub const WANT_NO_DELEG: u32 = 0x0400;
    pub const WANT_CANCEL: u32 = 0x0500;
    pub const WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL: u32 = 0x1_0000;
    pub const PUSH_DELEG_WHEN_UNCONTENDED: u32 = 0x2_0000;
    /// All want bits of 4.1.
    pub const WANTS: u32 =
        WANT_MASK | WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL | PUSH_DELEG_WHEN_UNCONTENDED;

    /// A want bit of RFC 9754.
    pub const WANT_DELEG_TIMESTAMPS: u32 = 0x10_0000;
    pub const WANT_OPEN_XOR_DELEGATION: u32 = 0x20_0000;
}

/// Flags in the result of OPEN (`rflags`).
pub mod open_result {
    pub const CONFIRM: u32 = 2;
    pub const LOCKTYPE_POSIX: u32 = 4;
    pub const PRESERVE_UNLINKED: u32 = 8;
    pub const MAY_NOTIFY_LOCK: u32 = 0x20;
}

/// `creatverfattr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Creatverfattr<'a> {
    pub verf: Verifier4,
    pub attrs: Fattr4<'a>,
}

/// `createhow4`. The last variant exists from 4.1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Createhow4<'a> {
    #[xdr(0)]
    Unchecked(Fattr4<'a>),
    #[xdr(1)]
    Guarded(Fattr4<'a>),
    #[xdr(2)]
    Exclusive(Verifier4),
    #[xdr(3)]
    Exclusive41(Creatverfattr<'a>),
}

/// The choice of OPEN to create the file or not: `openflag4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Openflag4<'a> {
    #[xdr(0)]
    NoCreate,
    #[xdr(1)]
    Create(Createhow4<'a>),
}

/// The name, handle or delegation by which OPEN opens the file: `open_claim4`. The last three
/// variants exist from 4.1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum OpenClaim4<'a> {
    #[xdr(0)]
    Null(Component4<'a>),
    #[xdr(1)]
    Previous(OpenDelegationType4),
    #[xdr(2)]
    DelegateCur { delegate_stateid: Stateid4, file: Component4<'a> },
    #[xdr(3)]
    DelegatePrev(Component4<'a>),
    #[xdr(4)]
    Fh,
    #[xdr(5)]
    DelegCurFh(Stateid4),
    #[xdr(6)]
    DelegPrevFh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Open4args<'a> {
    pub seqid: Seqid4,
    pub share_access: u32,
    pub share_deny: u32,
    pub owner: StateOwner4<'a>,
    pub openhow: Openflag4<'a>,
    pub claim: OpenClaim4<'a>,
}

/// The arguments of OPEN that a server supports, by the numbers of bits and values (RFC 9754): the
/// attribute `open_arguments`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct OpenArguments4 {
    pub share_access: Bitmap4,
    pub share_deny: Bitmap4,
    pub share_access_want: Bitmap4,
    pub open_claim: Bitmap4,
    pub createmode: Bitmap4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Open4resok<'a> {
    pub stateid: Stateid4,
    pub cinfo: ChangeInfo4,
    pub rflags: u32,
    pub attrset: Bitmap4,
    pub delegation: OpenDelegation4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct OpenConfirm4args {
    pub open_stateid: Stateid4,
    pub seqid: Seqid4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct OpenDowngrade4args {
    pub open_stateid: Stateid4,
    pub seqid: Seqid4,
    pub share_access: u32,
    pub share_deny: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Close4args {
    pub seqid: Seqid4,
    pub open_stateid: Stateid4,
}

//! Byte-range locks (RFC 7530, 16.10 to 16.12; RFC 8881, 18.10 to 18.12).
#![allow(missing_docs)]

use comity_xdr::{Decode, Decoder, Encode, Encoder, Malformed};

use super::{Clientid4, Opaque4, Seqid4, Stateid4};

/// `nfs_lock_type4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum NfsLockType4 {
    Read = 1,
    Write = 2,
    ReadWait = 3,
    WriteWait = 4,
}

/// The owner of opens or locks: `open_owner4`, `lock_owner4`, `state_owner4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub struct StateOwner4<'a> {
    pub clientid: Clientid4,
    pub owner: Opaque4<'a>,
}

/// `open_to_lock_owner4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct OpenToLockOwner4<'a> {
    pub open_seqid: Seqid4,
    pub open_stateid: Stateid4,
    pub lock_seqid: Seqid4,
    pub lock_owner: StateOwner4<'a>,
}

/// `exist_lock_owner4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ExistLockOwner4 {
    pub lock_stateid: Stateid4,
    pub lock_seqid: Seqid4,
}

/// `locker4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locker4<'a> {
    New(OpenToLockOwner4<'a>),
    Exist(ExistLockOwner4),
}

impl Encode for Locker4<'_> {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.value(&matches!(self, Self::New(_)));
        match self {
            Self::New(owner) => encoder.value(owner),
            Self::Exist(owner) => encoder.value(owner),
        }
    }
}

impl<'a> Decode<'a> for Locker4<'a> {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        Ok(match decoder.value()? {
            true => Self::New(decoder.value()?),
            false => Self::Exist(decoder.value()?),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Lock4args<'a> {
    pub locktype: NfsLockType4,
    pub reclaim: bool,
    pub offset: u64,
    pub length: u64,
    pub locker: Locker4<'a>,
}

/// A lock that conflicts: `LOCK4denied`. It follows the status DENIED of LOCK and LOCKT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Lock4denied<'a> {
    pub offset: u64,
    pub length: u64,
    pub locktype: NfsLockType4,
    pub owner: StateOwner4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Lockt4args<'a> {
    pub locktype: NfsLockType4,
    pub offset: u64,
    pub length: u64,
    pub owner: StateOwner4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Locku4args {
    pub locktype: NfsLockType4,
    pub seqid: Seqid4,
    pub lock_stateid: Stateid4,
    pub offset: u64,
    pub length: u64,
}

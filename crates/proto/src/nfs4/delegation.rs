//! Delegations (RFC 7530, 10.4; RFC 8881, 10.4 and 18.16.3). DELEGRETURN takes only a [`Stateid4`].
#![allow(missing_docs)]

use comity_xdr::{Decode, Encode};

use super::{Nfsace4, Stateid4};

/// `open_delegation_type4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum OpenDelegationType4 {
    None = 0,
    Read = 1,
    Write = 2,
    /// Only in 4.1 and later.
    NoneExt = 3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct OpenReadDelegation4<'a> {
    pub stateid: Stateid4,
    /// True if the delegation must be returned at once.
    pub recall: bool,
    pub permissions: Nfsace4<'a>,
}

/// The limit on unwritten data at a client: `nfs_space_limit4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum NfsSpaceLimit4 {
    #[xdr(1)]
    Size(u64),
    #[xdr(2)]
    Blocks { num_blocks: u32, bytes_per_block: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct OpenWriteDelegation4<'a> {
    pub stateid: Stateid4,
    /// True if the delegation must be returned at once.
    pub recall: bool,
    pub space_limit: NfsSpaceLimit4,
    pub permissions: Nfsace4<'a>,
}

/// The reason why there is no delegation, with its details: `why_no_delegation4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum OpenNoneDelegation4 {
    #[xdr(0)]
    NotWanted,
    #[xdr(1)]
    Contention { server_will_push: bool },
    #[xdr(2)]
    Resource { server_will_signal: bool },
    #[xdr(3)]
    NotSuppFtype,
    #[xdr(4)]
    WriteDelegNotSuppFtype,
    #[xdr(5)]
    NotSuppUpgrade,
    #[xdr(6)]
    NotSuppDowngrade,
    #[xdr(7)]
    Cancelled,
    #[xdr(8)]
    IsDir,
}

/// `open_delegation4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum OpenDelegation4<'a> {
    #[xdr(0)]
    None,
    #[xdr(1)]
    Read(OpenReadDelegation4<'a>),
    #[xdr(2)]
    Write(OpenWriteDelegation4<'a>),
    /// Only in 4.1 and later.
    #[xdr(3)]
    NoneExt(OpenNoneDelegation4),
}

//! Copies on the server (RFC 7862, 15.2, 15.8, 15.9, 15.13).
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode};

use super::{Component4, Netaddr4, Nfsstat4, StableHow4, Stateid4, Verifier4};

/// The location of the source on another server: `netloc4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Netloc4<'a> {
    #[xdr(1)]
    Name(Component4<'a>),
    #[xdr(2)]
    Url(Component4<'a>),
    #[xdr(3)]
    Netaddr(Netaddr4<'a>),
}

/// Most locations of a source that are decoded.
pub const SOURCES_MAX: u32 = 16;

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Copy4args<'a> {
    pub src_stateid: Stateid4,
    pub dst_stateid: Stateid4,
    pub src_offset: u64,
    pub dst_offset: u64,
    /// 0 means the rest of the source.
    pub count: u64,
    pub consecutive: bool,
    pub synchronous: bool,
    /// An empty list means that the source is on this server.
    pub source_server: Counted<Netloc4<'a>, SOURCES_MAX>,
}

/// `write_response4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct WriteResponse4 {
    /// The stateid of an asynchronous copy that is under way.
    pub callback_id: Option<Stateid4>,
    pub count: u64,
    pub committed: StableHow4,
    pub writeverf: Verifier4,
}

/// `copy_requirements4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CopyRequirements4 {
    pub consecutive: bool,
    pub synchronous: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Copy4resok {
    pub response: WriteResponse4,
    pub requirements: CopyRequirements4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct OffloadStatus4resok {
    pub count: u64,
    /// The final status, if the copy has ended.
    pub complete: Option<Nfsstat4>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Clone4args {
    pub src_stateid: Stateid4,
    pub dst_stateid: Stateid4,
    pub src_offset: u64,
    pub dst_offset: u64,
    /// 0 means the rest of the source.
    pub count: u64,
}

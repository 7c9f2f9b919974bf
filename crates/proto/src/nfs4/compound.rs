#![allow(missing_docs)]

use comity_xdr::{Decode, Encode, Opaque};

use super::{NAME_BYTES_MAX, Nfsstat4};

/// A text of the client, which the server returns unchanged: `utf8str_cs`.
pub type Tag4<'a> = Opaque<'a, NAME_BYTES_MAX>;

/// The head of a COMPOUND. The operations follow; each begins with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CompoundHead<'a> {
    pub tag: Tag4<'a>,
    pub minorversion: u32,
    pub operations: u32,
}

/// The head of the results of a COMPOUND. Each result begins with its operation's number and its
/// status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CompoundResultHead<'a> {
    pub status: Nfsstat4,
    pub tag: Tag4<'a>,
    pub results: u32,
}

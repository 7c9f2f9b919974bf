//! Operations on data, named as in RFC 7530, 16; RFC 8881, 18; RFC 7862, 15.
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::{Bitmap4, DATA_BYTES_MAX, Stateid4, Verifier4};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Read4args {
    pub stateid: Stateid4,
    pub offset: u64,
    pub count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Read4resok<'a> {
    pub eof: bool,
    pub data: Opaque<'a, DATA_BYTES_MAX>,
}

/// `stable_how4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum StableHow4 {
    Unstable = 0,
    DataSync = 1,
    FileSync = 2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Write4args<'a> {
    pub stateid: Stateid4,
    pub offset: u64,
    pub stable: StableHow4,
    pub data: Opaque<'a, DATA_BYTES_MAX>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Write4resok {
    pub count: u32,
    pub committed: StableHow4,
    pub writeverf: Verifier4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Commit4args {
    pub offset: u64,
    pub count: u32,
}

/// The arguments of ALLOCATE and DEALLOCATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Range4args {
    pub stateid: Stateid4,
    pub offset: u64,
    pub length: u64,
}

/// `data_content4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum DataContent4 {
    Data = 0,
    Hole = 1,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Seek4args {
    pub stateid: Stateid4,
    pub offset: u64,
    /// A number of [`DataContent4`]; other numbers are answered with UNION_NOTSUPP.
    pub what: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Seek4resok {
    pub eof: bool,
    pub offset: u64,
}

/// A part of the result of READ_PLUS: `read_plus_content`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ReadPlusContent<'a> {
    #[xdr(0)]
    Data { offset: u64, data: Opaque<'a, DATA_BYTES_MAX> },
    #[xdr(1)]
    Hole { offset: u64, length: u64 },
}

/// Most parts of a READ_PLUS reply that are decoded.
pub const CONTENTS_MAX: u32 = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ReadPlus4resok<'a> {
    pub eof: bool,
    pub contents: Counted<ReadPlusContent<'a>, CONTENTS_MAX>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct IoAdvise4args {
    pub stateid: Stateid4,
    pub offset: u64,
    pub count: u64,
    pub hints: Bitmap4,
}

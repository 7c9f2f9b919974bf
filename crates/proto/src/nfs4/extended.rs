//! Extended attributes (RFC 8276, 8.4). GETXATTR and REMOVEXATTR take only a [`Xattrkey4`].
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::NAME_BYTES_MAX;

/// Longest value that is decoded, in bytes.
pub const XATTR_BYTES_MAX: u32 = 1 << 20;
/// Most names of a reply that are decoded.
pub const XATTRS_MAX: u32 = 65_536;

/// ACCESS: the right to read extended attributes (RFC 8276, 8.5).
pub const ACCESS4_XAREAD: u32 = 0x40;
/// ACCESS: the right to write extended attributes.
pub const ACCESS4_XAWRITE: u32 = 0x80;
/// ACCESS: the right to list extended attributes.
pub const ACCESS4_XALIST: u32 = 0x100;

/// A name: `xattrkey4`.
pub type Xattrkey4<'a> = Opaque<'a, NAME_BYTES_MAX>;
/// A value: `xattrvalue4`.
pub type Xattrvalue4<'a> = Opaque<'a, XATTR_BYTES_MAX>;

/// `setxattr_option4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum SetxattrOption4 {
    Either = 0,
    Create = 1,
    Replace = 2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Setxattr4args<'a> {
    pub option: SetxattrOption4,
    pub key: Xattrkey4<'a>,
    pub value: Xattrvalue4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Listxattrs4args {
    pub cookie: u64,
    pub maxcount: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Listxattrs4resok<'a> {
    pub cookie: u64,
    pub names: Counted<Xattrkey4<'a>, XATTRS_MAX>,
    pub eof: bool,
}

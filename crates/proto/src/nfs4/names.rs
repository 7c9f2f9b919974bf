//! Operations on handles, names and attributes, named as in RFC 7530, 16 and RFC 8881, 18. PUTFH
//! takes only a [`super::NfsFh4`], GETATTR a [`Bitmap4`], VERIFY and NVERIFY a [`Fattr4`], LOOKUP,
//! REMOVE, LINK and SECINFO a [`Component4`].
#![allow(missing_docs)]

use comity_xdr::{Decode, Encode};

use super::{Bitmap4, ChangeInfo4, Component4, Fattr4, Linktext4, Specdata4, Stateid4, Verifier4};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Access4res {
    pub supported: u32,
    pub access: u32,
}

/// The type of a new object with its arguments: `createtype4`. A type that CREATE cannot make is
/// decoded, too, so that it can be answered with BADTYPE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Createtype4<'a> {
    #[xdr(1)]
    Reg,
    #[xdr(2)]
    Dir,
    #[xdr(3)]
    Blk(Specdata4),
    #[xdr(4)]
    Chr(Specdata4),
    #[xdr(5)]
    Lnk(Linktext4<'a>),
    #[xdr(6)]
    Sock,
    #[xdr(7)]
    Fifo,
    #[xdr(8)]
    Attrdir,
    #[xdr(9)]
    Namedattr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Create4args<'a> {
    pub objtype: Createtype4<'a>,
    pub objname: Component4<'a>,
    pub createattrs: Fattr4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Create4resok {
    pub cinfo: ChangeInfo4,
    pub attrset: Bitmap4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Readdir4args {
    pub cookie: u64,
    pub cookieverf: Verifier4,
    pub dircount: u32,
    pub maxcount: u32,
    pub attr_request: Bitmap4,
}

/// The head of an entry of READDIR, before its attributes. The entries follow the verifier, each
/// after the boolean true; after the last one come false and `eof`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Entry4<'a> {
    pub cookie: u64,
    pub name: Component4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Rename4args<'a> {
    pub oldname: Component4<'a>,
    pub newname: Component4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Rename4resok {
    pub source_cinfo: ChangeInfo4,
    pub target_cinfo: ChangeInfo4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Setattr4args<'a> {
    pub stateid: Stateid4,
    pub obj_attributes: Fattr4<'a>,
}

/// The object of SECINFO_NO_NAME: `secinfo_style4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum SecinfoStyle4 {
    CurrentFh = 0,
    Parent = 1,
}

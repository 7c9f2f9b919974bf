//! Arguments of the procedures, named as in RFC 1813, 3.3. GETATTR, READLINK, FSSTAT, FSINFO and
//! PATHCONF take only a [`NfsFh3`].
#![allow(missing_docs)]

use comity_xdr::{Decode, Encode, Opaque};

use super::{
    Cookieverf3, Createverf3, DATA_BYTES_MAX, Filename3, NfsFh3, Nfspath3, Nfstime3, Sattr3,
    Specdata3,
};

/// A name in a directory: `diropargs3`; the only argument of LOOKUP, REMOVE and RMDIR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Diropargs3<'a> {
    pub dir: NfsFh3<'a>,
    pub name: Filename3<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Setattr3args<'a> {
    pub object: NfsFh3<'a>,
    pub new_attributes: Sattr3,
    /// The ctime that the object must have: `sattrguard3`.
    pub guard: Option<Nfstime3>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Access3args<'a> {
    pub object: NfsFh3<'a>,
    pub access: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Read3args<'a> {
    pub file: NfsFh3<'a>,
    pub offset: u64,
    pub count: u32,
}

/// `stable_how`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum StableHow {
    Unstable = 0,
    DataSync = 1,
    FileSync = 2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Write3args<'a> {
    pub file: NfsFh3<'a>,
    pub offset: u64,
    pub count: u32,
    pub stable: StableHow,
    pub data: Opaque<'a, DATA_BYTES_MAX>,
}

/// `createhow3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Createhow3 {
    #[xdr(0)]
    Unchecked(Sattr3),
    #[xdr(1)]
    Guarded(Sattr3),
    #[xdr(2)]
    Exclusive(Createverf3),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Create3args<'a> {
    pub place: Diropargs3<'a>,
    pub how: Createhow3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Mkdir3args<'a> {
    pub place: Diropargs3<'a>,
    pub attributes: Sattr3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Symlink3args<'a> {
    pub place: Diropargs3<'a>,
    pub attributes: Sattr3,
    pub target: Nfspath3<'a>,
}

/// `mknoddata3`. A regular file, directory or link is decoded, too, so that the call can be
/// answered with BADTYPE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Mknoddata3 {
    #[xdr(1)]
    Reg,
    #[xdr(2)]
    Dir,
    #[xdr(3)]
    Blk(Sattr3, Specdata3),
    #[xdr(4)]
    Chr(Sattr3, Specdata3),
    #[xdr(5)]
    Lnk,
    #[xdr(6)]
    Sock(Sattr3),
    #[xdr(7)]
    Fifo(Sattr3),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Mknod3args<'a> {
    pub place: Diropargs3<'a>,
    pub what: Mknoddata3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Rename3args<'a> {
    pub from: Diropargs3<'a>,
    pub to: Diropargs3<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Link3args<'a> {
    pub file: NfsFh3<'a>,
    pub link: Diropargs3<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Readdir3args<'a> {
    pub dir: NfsFh3<'a>,
    pub cookie: u64,
    pub cookieverf: Cookieverf3,
    /// Most bytes of the whole result.
    pub count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Readdirplus3args<'a> {
    pub dir: NfsFh3<'a>,
    pub cookie: u64,
    pub cookieverf: Cookieverf3,
    /// Most bytes of names, numbers and cookies.
    pub dircount: u32,
    /// Most bytes of the whole result.
    pub maxcount: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Commit3args<'a> {
    pub file: NfsFh3<'a>,
    pub offset: u64,
    pub count: u32,
}

//! NFS version 3 (RFC 1813).

mod arguments;
mod attributes;
mod results;

pub use arguments::*;
pub use attributes::*;
pub use results::*;

use comity_xdr::{Decode, Encode, Opaque};

/// Program number.
pub const PROGRAM: u32 = 100_003;
/// The version in use.
pub const VERSION: u32 = 3;

/// Longest handle in bytes (NFS3_FHSIZE).
pub const HANDLE_BYTES_MAX: u32 = 64;
/// Longest name or path that is decoded, in bytes. RFC 1813 has no limit: a name above the file
/// system's limit is answered with NAMETOOLONG, and a call with a name above this one with
/// GARBAGE_ARGS.
pub const NAME_BYTES_MAX: u32 = 4096;
/// Largest data of READ and WRITE that is decoded, in bytes.
pub const DATA_BYTES_MAX: u32 = 1 << 20;

/// Procedure numbers (RFC 1813, 3.3).
pub mod procedure {
    #![allow(missing_docs)]
    pub const NULL: u32 = 0;
    pub const GETATTR: u32 = 1;
    pub const SETATTR: u32 = 2;
    pub const LOOKUP: u32 = 3;
    pub const ACCESS: u32 = 4;
    pub const READLINK: u32 = 5;
    pub const READ: u32 = 6;
    pub const WRITE: u32 = 7;
    pub const CREATE: u32 = 8;
    pub const MKDIR: u32 = 9;
    pub const SYMLINK: u32 = 10;
    pub const MKNOD: u32 = 11;
    pub const REMOVE: u32 = 12;
    pub const RMDIR: u32 = 13;
    pub const RENAME: u32 = 14;
    pub const LINK: u32 = 15;
    pub const READDIR: u32 = 16;
    pub const READDIRPLUS: u32 = 17;
    pub const FSSTAT: u32 = 18;
    pub const FSINFO: u32 = 19;
    pub const PATHCONF: u32 = 20;
    pub const COMMIT: u32 = 21;
}

/// A file handle: `nfs_fh3`.
pub type NfsFh3<'a> = Opaque<'a, HANDLE_BYTES_MAX>;
/// A name in a directory: `filename3`.
pub type Filename3<'a> = Opaque<'a, NAME_BYTES_MAX>;
/// The target of a symbolic link: `nfspath3`.
pub type Nfspath3<'a> = Opaque<'a, NAME_BYTES_MAX>;
/// Write verifier: eight bytes that change when the server loses uncommitted data (`writeverf3`).
pub type Writeverf3 = [u8; 8];
/// Create verifier: eight bytes by which a retried exclusive create is recognized (`createverf3`).
pub type Createverf3 = [u8; 8];
/// Cookie verifier: eight bytes that identify the state of a directory in which a cookie is valid
/// (`cookieverf3`).
pub type Cookieverf3 = [u8; 8];

/// The status of a procedure: `nfsstat3` (RFC 1813, 2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
#[allow(missing_docs)]
pub enum Nfsstat3 {
    Ok = 0,
    Perm = 1,
    NoEnt = 2,
    Io = 5,
    NxIo = 6,
    Acces = 13,
    Exist = 17,
    XDev = 18,
    NoDev = 19,
    NotDir = 20,
    IsDir = 21,
    Inval = 22,
    FBig = 27,
    NoSpc = 28,
    RoFs = 30,
    MLink = 31,
    NameTooLong = 63,
    NotEmpty = 66,
    DQuot = 69,
    Stale = 70,
    Remote = 71,
    BadHandle = 10001,
    NotSync = 10002,
    BadCookie = 10003,
    NotSupp = 10004,
    TooSmall = 10005,
    ServerFault = 10006,
    BadType = 10007,
    Jukebox = 10008,
}

/// The kind of an object: `ftype3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[allow(missing_docs)]
pub enum Ftype3 {
    Reg = 1,
    Dir = 2,
    Blk = 3,
    Chr = 4,
    Lnk = 5,
    Sock = 6,
    Fifo = 7,
}

/// A device's numbers: `specdata3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Specdata3 {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

/// A moment: `nfstime3`. Seconds are unsigned on the wire (RFC 1813, 2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Nfstime3 {
    /// Seconds since 1970.
    pub seconds: u32,
    /// Nanoseconds within the second.
    pub nseconds: u32,
}

//! MOUNT version 3 (RFC 1813, appendix I).

use comity_xdr::{Counted, Decode, Encode, Encoder, Opaque};

/// Program number.
pub const PROGRAM: u32 = 100_005;
/// The version in use.
pub const VERSION: u32 = 3;

/// Longest path in bytes (MNTPATHLEN).
pub const PATH_BYTES_MAX: u32 = 1024;
/// Longest name in bytes (MNTNAMLEN).
pub const NAME_BYTES_MAX: u32 = 255;

/// Procedure numbers.
pub mod procedure {
    #![allow(missing_docs)]
    pub const NULL: u32 = 0;
    pub const MNT: u32 = 1;
    pub const DUMP: u32 = 2;
    pub const UMNT: u32 = 3;
    pub const UMNTALL: u32 = 4;
    pub const EXPORT: u32 = 5;
}

/// A path to mount or unmount.
pub type Dirpath<'a> = Opaque<'a, PATH_BYTES_MAX>;

/// The name of a host or of a group of them.
pub type HostName<'a> = Opaque<'a, NAME_BYTES_MAX>;

/// The reason why MNT failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[allow(missing_docs)]
pub enum Mountstat3 {
    Ok = 0,
    Perm = 1,
    NoEnt = 2,
    Io = 5,
    Acces = 13,
    NotDir = 20,
    Inval = 22,
    NameTooLong = 63,
    NotSupp = 10004,
    ServerFault = 10006,
}

/// The result of a successful MNT, after [`Mountstat3::Ok`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct MountOk<'a> {
    /// The handle of the mounted directory.
    pub handle: Opaque<'a, 64>,
    /// RPC authentication flavors in order of preference.
    pub flavors: Counted<u32, 32>,
}

/// One entry of EXPORT: a path and the clients to which it is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportLine<'a> {
    /// The exported path.
    pub path: &'a [u8],
    /// The clients that may mount it; an empty list means everybody.
    pub groups: Vec<&'a [u8]>,
}

impl Encode for ExportLine<'_> {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.opaque(self.path);
        for group in &self.groups {
            encoder.value(&true);
            encoder.opaque(group);
        }
        encoder.value(&false);
    }
}

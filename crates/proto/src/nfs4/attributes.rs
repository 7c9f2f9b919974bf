//! Attributes: their numbers and their values (RFC 7530, 5; RFC 8881, 5; RFC 7862, 12; RFC 8276,
//! 8.3).
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::{ATTRIBUTES_BYTES_MAX, Bitmap4, NAME_BYTES_MAX, Nfstime4};

/// Numbers of the attributes.
pub mod attribute {
    pub const SUPPORTED_ATTRS: u32 = 0;
    pub const TYPE: u32 = 1;
    pub const FH_EXPIRE_TYPE: u32 = 2;
    pub const CHANGE: u32 = 3;
    pub const SIZE: u32 = 4;
    pub const LINK_SUPPORT: u32 = 5;
    pub const SYMLINK_SUPPORT: u32 = 6;
    pub const NAMED_ATTR: u32 = 7;
    pub const FSID: u32 = 8;
    pub const UNIQUE_HANDLES: u32 = 9;
    pub const LEASE_TIME: u32 = 10;
    pub const RDATTR_ERROR: u32 = 11;
    pub const ACL: u32 = 12;
    pub const ACLSUPPORT: u32 = 13;
    pub const ARCHIVE: u32 = 14;
    pub const CANSETTIME: u32 = 15;
    pub const CASE_INSENSITIVE: u32 = 16;
    pub const CASE_PRESERVING: u32 = 17;
    pub const CHOWN_RESTRICTED: u32 = 18;
    pub const FILEHANDLE: u32 = 19;
    pub const FILEID: u32 = 20;
    pub const FILES_AVAIL: u32 = 21;
    pub const FILES_FREE: u32 = 22;
    pub const FILES_TOTAL: u32 = 23;
    pub const FS_LOCATIONS: u32 = 24;
    pub const HIDDEN: u32 = 25;
    pub const HOMOGENEOUS: u32 = 26;
    pub const MAXFILESIZE: u32 = 27;
    pub const MAXLINK: u32 = 28;
    pub const MAXNAME: u32 = 29;
    pub const MAXREAD: u32 = 30;
    pub const MAXWRITE: u32 = 31;
    pub const MIMETYPE: u32 = 32;
    pub const MODE: u32 = 33;
    pub const NO_TRUNC: u32 = 34;
    pub const NUMLINKS: u32 = 35;
    pub const OWNER: u32 = 36;
    pub const OWNER_GROUP: u32 = 37;
    pub const QUOTA_AVAIL_HARD: u32 = 38;
    pub const QUOTA_AVAIL_SOFT: u32 = 39;
    pub const QUOTA_USED: u32 = 40;
    pub const RAWDEV: u32 = 41;
    pub const SPACE_AVAIL: u32 = 42;
    pub const SPACE_FREE: u32 = 43;
    pub const SPACE_TOTAL: u32 = 44;
    pub const SPACE_USED: u32 = 45;
    pub const SYSTEM: u32 = 46;
    pub const TIME_ACCESS: u32 = 47;
    pub const TIME_ACCESS_SET: u32 = 48;
    pub const TIME_BACKUP: u32 = 49;
    pub const TIME_CREATE: u32 = 50;
    pub const TIME_DELTA: u32 = 51;
    pub const TIME_METADATA: u32 = 52;
    pub const TIME_MODIFY: u32 = 53;
    pub const TIME_MODIFY_SET: u32 = 54;
    pub const MOUNTED_ON_FILEID: u32 = 55;
    pub const DIR_NOTIF_DELAY: u32 = 56;
    pub const DIRENT_NOTIF_DELAY: u32 = 57;
    pub const DACL: u32 = 58;
    pub const SACL: u32 = 59;
    pub const CHANGE_POLICY: u32 = 60;
    pub const FS_STATUS: u32 = 61;
    pub const FS_LAYOUT_TYPES: u32 = 62;
    pub const LAYOUT_HINT: u32 = 63;
    pub const LAYOUT_TYPES: u32 = 64;
    pub const LAYOUT_BLKSIZE: u32 = 65;
    pub const LAYOUT_ALIGNMENT: u32 = 66;
    pub const FS_LOCATIONS_INFO: u32 = 67;
    pub const MDSTHRESHOLD: u32 = 68;
    pub const RETENTION_GET: u32 = 69;
    pub const RETENTION_SET: u32 = 70;
    pub const RETENTEVT_GET: u32 = 71;
    pub const RETENTEVT_SET: u32 = 72;
    pub const RETENTION_HOLD: u32 = 73;
    pub const MODE_SET_MASKED: u32 = 74;
    pub const SUPPATTR_EXCLCREAT: u32 = 75;
    pub const FS_CHARSET_CAP: u32 = 76;
    pub const CLONE_BLKSIZE: u32 = 77;
    pub const SPACE_FREED: u32 = 78;
    pub const CHANGE_ATTR_TYPE: u32 = 79;
    pub const SEC_LABEL: u32 = 80;
    pub const MODE_UMASK: u32 = 81;
    pub const XATTR_SUPPORT: u32 = 82;
    pub const OPEN_ARGUMENTS: u32 = 86;
}

/// Attributes with their values, in the order of their numbers: `fattr4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Fattr4<'a> {
    pub attrmask: Bitmap4,
    pub attr_vals: Opaque<'a, ATTRIBUTES_BYTES_MAX>,
}

/// The kind of an object: `nfs_ftype4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum NfsFtype4 {
    Reg = 1,
    Dir = 2,
    Blk = 3,
    Chr = 4,
    Lnk = 5,
    Sock = 6,
    Fifo = 7,
    Attrdir = 8,
    Namedattr = 9,
}

/// The number of a file system: `fsid4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Encode, Decode)]
pub struct Fsid4 {
    pub major: u64,
    pub minor: u64,
}

/// The new value of a time: `settime4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Settime4 {
    #[xdr(0)]
    SetToServerTime,
    #[xdr(1)]
    SetToClientTime(Nfstime4),
}

/// `mode_masked4` (RFC 8881, 6.2.5); also `mode_umask4` (RFC 8275), whose second field is the
/// umask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ModeMasked4 {
    pub value: u32,
    pub mask: u32,
}

/// The kind of counter in `change`: `change_attr_type4` (RFC 7862, 12.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ChangeAttrType4 {
    MonotonicIncr = 0,
    VersionCounter = 1,
    VersionCounterNopnfs = 2,
    TimeMetadata = 3,
    Undefined = 4,
}

/// A user or group as a string: `utf8str_mixed`.
pub type Owner4<'a> = Opaque<'a, NAME_BYTES_MAX>;

/// An entry of an ACL: `nfsace4` (RFC 7530, 6.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Nfsace4<'a> {
    pub acetype: u32,
    pub flag: u32,
    pub access_mask: u32,
    pub who: Owner4<'a>,
}

/// Most entries of an ACL that are decoded.
pub const ACES_MAX: u32 = 4096;

/// The attribute `acl`.
pub type Acl4<'a> = Counted<Nfsace4<'a>, ACES_MAX>;

/// The attribute `dacl`: `nfsacl41` (RFC 8881, 6.2.2).
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Nfsacl41<'a> {
    pub flag: u32,
    pub aces: Acl4<'a>,
}

/// Types, flags and mask bits of ACL entries (RFC 7530, 6.2.1; RFC 8881, 6.2.1).
pub mod ace {
    pub const ALLOWED: u32 = 0;
    pub const DENIED: u32 = 1;

    pub const FILE_INHERIT: u32 = 0x01;
    pub const DIRECTORY_INHERIT: u32 = 0x02;
    pub const NO_PROPAGATE_INHERIT: u32 = 0x04;
    pub const INHERIT_ONLY: u32 = 0x08;
    pub const IDENTIFIER_GROUP: u32 = 0x40;
    pub const INHERITED: u32 = 0x80;

    pub const READ_DATA: u32 = 0x0000_0001;
    pub const WRITE_DATA: u32 = 0x0000_0002;
    pub const APPEND_DATA: u32 = 0x0000_0004;
    pub const READ_NAMED_ATTRS: u32 = 0x0000_0008;
    pub const WRITE_NAMED_ATTRS: u32 = 0x0000_0010;
    pub const EXECUTE: u32 = 0x0000_0020;
    pub const DELETE_CHILD: u32 = 0x0000_0040;
    pub const READ_ATTRIBUTES: u32 = 0x0000_0080;
    pub const WRITE_ATTRIBUTES: u32 = 0x0000_0100;
    pub const DELETE: u32 = 0x0001_0000;
    pub const READ_ACL: u32 = 0x0002_0000;
    pub const WRITE_ACL: u32 = 0x0004_0000;
    pub const WRITE_OWNER: u32 = 0x0008_0000;
    pub const SYNCHRONIZE: u32 = 0x0010_0000;

    /// The server supports ALLOW entries.
    pub const SUPPORT_ALLOW: u32 = 1;
    pub const SUPPORT_DENY: u32 = 2;
}

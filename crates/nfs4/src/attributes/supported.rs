use comity_proto::nfs4::{Bitmap4, attribute as a};

/// Attributes of all minor versions.
const ALWAYS: Bitmap4 = Bitmap4::of(&[
    a::SUPPORTED_ATTRS,
    a::TYPE,
    a::FH_EXPIRE_TYPE,
    a::CHANGE,
    a::SIZE,
    a::LINK_SUPPORT,
    a::SYMLINK_SUPPORT,
    a::NAMED_ATTR,
    a::FSID,
    a::UNIQUE_HANDLES,
    a::LEASE_TIME,
    a::RDATTR_ERROR,
    a::ACL,
    a::ACLSUPPORT,
    a::CANSETTIME,
    a::CASE_INSENSITIVE,
    a::CASE_PRESERVING,
    a::CHOWN_RESTRICTED,
    a::FILEHANDLE,
    a::FILEID,
    a::FILES_AVAIL,
    a::FILES_FREE,
    a::FILES_TOTAL,
    a::FS_LOCATIONS,
    a::HOMOGENEOUS,
    a::MAXFILESIZE,
    a::MAXLINK,
    a::MAXNAME,
    a::MAXREAD,
    a::MAXWRITE,
    a::MODE,
    a::NO_TRUNC,
    a::NUMLINKS,
    a::OWNER,
    a::OWNER_GROUP,
    a::RAWDEV,
    a::SPACE_AVAIL,
    a::SPACE_FREE,
    a::SPACE_TOTAL,
    a::SPACE_USED,
    a::TIME_ACCESS,
    a::TIME_ACCESS_SET,
    a::TIME_DELTA,
    a::TIME_METADATA,
    a::TIME_MODIFY,
    a::TIME_MODIFY_SET,
    a::MOUNTED_ON_FILEID,
]);

/// Attributes that 4.1 adds.
const SINCE_1: Bitmap4 = Bitmap4::of(&[
    a::FS_LAYOUT_TYPES,
    a::LAYOUT_BLKSIZE,
    a::MDSTHRESHOLD,
    a::SUPPATTR_EXCLCREAT,
    a::FS_CHARSET_CAP,
]);

/// Attributes that 4.2 adds.
const SINCE_2: Bitmap4 = Bitmap4::of(&[
    a::CLONE_BLKSIZE,
    a::CHANGE_ATTR_TYPE,
    a::MODE_UMASK,
    a::XATTR_SUPPORT,
    a::OPEN_ARGUMENTS,
]);

/// Attributes that can be set but not read (RFC 8881, 5.5).
pub(crate) const READABLE_NOT: Bitmap4 =
    Bitmap4::of(&[a::TIME_ACCESS_SET, a::TIME_MODIFY_SET, a::MODE_UMASK]);

/// Attributes that can be set.
pub(super) const SETTABLE: Bitmap4 = Bitmap4::of(&[
    a::SIZE,
    a::ACL,
    a::MODE,
    a::OWNER,
    a::OWNER_GROUP,
    a::TIME_ACCESS_SET,
    a::TIME_MODIFY_SET,
    a::MODE_UMASK,
]);

/// Attributes that an exclusive create (EXCLUSIVE4_1) can set. The times are missing because they
/// store the verifier until a later call sets them.
pub(crate) const EXCLUSIVE: Bitmap4 =
    SETTABLE.without(&Bitmap4::of(&[a::TIME_ACCESS_SET, a::TIME_MODIFY_SET]));

/// Returns the attributes that a minor version supports.
pub(crate) const fn supported(minor: u32) -> Bitmap4 {
    match minor {
        0 => ALWAYS,
        1 => ALWAYS.or(&SINCE_1),
        _ => ALWAYS.or(&SINCE_1).or(&SINCE_2),
    }
}

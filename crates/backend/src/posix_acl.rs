//! POSIX ACLs in the form in which Linux and Ceph keep them in extended attributes.

use comity_vfs::{Acl, AclEntry, AclKind, AclTag, Disk, Gid, Result, Status, Uid};

/// The version at the beginning of the kernel's form of an ACL (linux/posix_acl_xattr.h).
const VERSION: u32 = 2;

/// The id of an entry that names no user or group.
const NOBODY_NAMED: u32 = u32::MAX;

const USER_OBJ: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// Returns the attribute that has the ACL.
pub(crate) const fn name(kind: AclKind) -> &'static std::ffi::CStr {
    match kind {
        AclKind::Access => c"system.posix_acl_access",
        AclKind::Default => c"system.posix_acl_default",
    }
}

/// Parses the kernel's form: a version, then 8 bytes for each entry, all little-endian.
pub(crate) fn parse(bytes: &[u8]) -> Result<Acl<Disk>> {
    let (version, rest) = bytes.split_first_chunk::<4>().ok_or(Status::Io)?;
    if u32::from_le_bytes(*version) != VERSION || rest.len() % 8 != 0 {
        return Err(Status::Io);
    }
    let entries = rest.chunks_exact(8).map(parse_entry).collect::<Result<_>>()?;
    Ok(Acl { entries })
}

fn parse_entry(bytes: &[u8]) -> Result<AclEntry<Disk>> {
    let &[t0, t1, p0, p1, i0, i1, i2, i3] = bytes else { return Err(Status::Io) };
    let id = u32::from_le_bytes([i0, i1, i2, i3]);
    let tag = match u16::from_le_bytes([t0, t1]) {
        USER_OBJ => AclTag::UserObj,
        USER => AclTag::User(Uid::new(id)),
        GROUP_OBJ => AclTag::GroupObj,
        GROUP => AclTag::Group(Gid::new(id)),
        MASK => AclTag::Mask,
        OTHER => AclTag::Other,
        _ => return Err(Status::Io),
    };
    Ok(AclEntry { tag, permissions: (u16::from_le_bytes([p0, p1]) & 7) as u8 })
}

/// Composes the form that [`parse`] takes.
pub(crate) fn compose(acl: &Acl<Disk>) -> Vec<u8> {
    let mut bytes = VERSION.to_le_bytes().to_vec();
    for entry in &acl.entries {
        let (tag, id) = match entry.tag {
            AclTag::UserObj => (USER_OBJ, NOBODY_NAMED),
            AclTag::User(uid) => (USER, uid.number()),
            AclTag::GroupObj => (GROUP_OBJ, NOBODY_NAMED),
            AclTag::Group(gid) => (GROUP, gid.number()),
            AclTag::Mask => (MASK, NOBODY_NAMED),
            AclTag::Other => (OTHER, NOBODY_NAMED),
        };
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&u16::from(entry.permissions).to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_composed_acl_is_parsed_again() {
        let entry = |tag, permissions| AclEntry { tag, permissions };
        let acl = Acl {
            entries: vec![
                entry(AclTag::UserObj, 7),
                entry(AclTag::User(Uid::new(1000)), 5),
                entry(AclTag::GroupObj, 4),
                entry(AclTag::Group(Gid::new(70_000)), 6),
                entry(AclTag::Mask, 7),
                entry(AclTag::Other, 0),
            ],
        };
        assert_eq!(parse(&compose(&acl)), Ok(acl));
    }

    #[test]
    fn a_form_that_is_not_the_kernels_is_the_mediums_fault() {
        for bytes in [&b""[..], b"\x01\0\0\0", b"\x02\0\0\0\0", b"\x02\0\0\0\x03\0\0\0\0\0\0\0"] {
            assert_eq!(parse(bytes), Err(Status::Io), "{bytes:?}");
        }
    }
}

//! Requests about extended attributes: GETXATTR, SETXATTR, LISTXATTR, REMOVEXATTR.
//!
//! An `Fs` has user attributes (`user.`) and POSIX ACLs. Programs see ACLs as
//! `system.posix_acl_access` and `system.posix_acl_default`.

use comity_vfs::{Acl, AclEntry, AclKind, AclTag, Disk, Gid, Name, Uid, XattrMode};
use rustix::fs::XattrFlags;
use rustix::io::{self, Errno};

use super::Mounted;
use super::names::name;
use crate::callers::Requester;

const USER: &[u8] = b"user.";
const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT: &[u8] = b"system.posix_acl_default";

/// Version of the encoding of an ACL (`POSIX_ACL_XATTR_VERSION` in Linux).
const ACL_VERSION: u32 = 2;

/// Tags of ACL entries, and the id of entries without one.
const USER_OBJ: u16 = 0x01;
const USER_ID: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP_ID: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
const NO_ID: u32 = u32::MAX;

/// The two kinds of attributes that an `Fs` has.
enum Attribute<'a> {
    User(Name<'a>),
    Acl(AclKind),
}

impl<'a> Attribute<'a> {
    fn of(bytes: &'a [u8]) -> io::Result<Self> {
        match bytes {
            ACCESS => Ok(Self::Acl(AclKind::Access)),
            DEFAULT => Ok(Self::Acl(AclKind::Default)),
            _ => match bytes.strip_prefix(USER) {
                Some(rest) => name(rest).map(Self::User),
                None => Err(Errno::OPNOTSUPP),
            },
        }
    }
}

impl Mounted {
    pub(crate) fn getxattr(
        &self,
        who: Requester,
        number: u64,
        bytes: &[u8],
    ) -> io::Result<Vec<u8>> {
        let node = self.inodes.handle(number)?;
        match Attribute::of(bytes)? {
            Attribute::User(name) => {
                let cred = self.cred(who);
                self.verb(who, || self.fs.getxattr(&cred, &node, name))
            }
            Attribute::Acl(kind) => {
                let acl = self.verb(who, || self.fs.getacl(&node, kind))?;
                acl.map(|acl| encode(&acl)).ok_or(Errno::NODATA)
            }
        }
    }

    pub(crate) fn setxattr(
        &self,
        who: Requester,
        (number, bytes): (u64, &[u8]),
        value: Option<&[u8]>,
        flags: u32,
    ) -> io::Result<()> {
        let (node, cred) = (self.inodes.handle(number)?, self.cred(who));
        let change = match Attribute::of(bytes)? {
            Attribute::User(name) => {
                let mode = mode(flags)?;
                self.verb(who, || self.fs.setxattr(&cred, &node, name, value, mode))?
            }
            Attribute::Acl(kind) => {
                let acl = value.map(decode).transpose()?;
                self.verb(who, || self.fs.setacl(&cred, &node, kind, acl.as_ref()))?
            }
        };
        self.note(number, &change);
        Ok(())
    }

    pub(crate) fn removexattr(&self, who: Requester, number: u64, bytes: &[u8]) -> io::Result<()> {
        self.setxattr(who, (number, bytes), None, XattrFlags::REPLACE.bits())
    }

    /// The names, each followed by a zero byte, as listxattr(2) returns them.
    pub(crate) fn listxattr(&self, who: Requester, number: u64) -> io::Result<Vec<u8>> {
        let (node, cred) = (self.inodes.handle(number)?, self.cred(who));
        let names = match self.verb(who, || self.fs.listxattr(&cred, &node)) {
            Err(Errno::OPNOTSUPP) => Vec::new(),
            names => names?,
        };
        let mut list = Vec::new();
        for (kind, name) in [(AclKind::Access, ACCESS), (AclKind::Default, DEFAULT)] {
            if matches!(self.fs.getacl(&node, kind), Ok(Some(_))) {
                list.extend_from_slice(name);
                list.push(0);
            }
        }
        for name in names {
            list.extend_from_slice(USER);
            list.extend_from_slice(&name);
            list.push(0);
        }
        Ok(list)
    }
}

fn mode(flags: u32) -> io::Result<XattrMode> {
    match XattrFlags::from_bits(flags) {
        Some(flags) if flags.is_empty() => Ok(XattrMode::Either),
        Some(XattrFlags::CREATE) => Ok(XattrMode::Create),
        Some(XattrFlags::REPLACE) => Ok(XattrMode::Replace),
        _ => Err(Errno::INVAL),
    }
}

/// Encodes an ACL as the value of its attribute (`struct posix_acl_xattr_entry` in Linux).
fn encode(acl: &Acl<Disk>) -> Vec<u8> {
    let mut value = ACL_VERSION.to_le_bytes().to_vec();
    for AclEntry { tag, permissions } in &acl.entries {
        let (tag, id) = match tag {
            AclTag::UserObj => (USER_OBJ, NO_ID),
            AclTag::User(uid) => (USER_ID, uid.number()),
            AclTag::GroupObj => (GROUP_OBJ, NO_ID),
            AclTag::Group(gid) => (GROUP_ID, gid.number()),
            AclTag::Mask => (MASK, NO_ID),
            AclTag::Other => (OTHER, NO_ID),
        };
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&u16::from(*permissions).to_le_bytes());
        value.extend_from_slice(&id.to_le_bytes());
    }
    value
}

fn decode(value: &[u8]) -> io::Result<Acl<Disk>> {
    let (version, rest) = value.split_first_chunk::<4>().ok_or(Errno::INVAL)?;
    let (entries, odd) = rest.as_chunks::<8>();
    if u32::from_le_bytes(*version) != ACL_VERSION || !odd.is_empty() {
        return Err(Errno::INVAL);
    }
    let entries = entries.iter().map(decode_entry).collect::<io::Result<_>>()?;
    Ok(Acl { entries })
}

fn decode_entry(bytes: &[u8; 8]) -> io::Result<AclEntry<Disk>> {
    let [a, b, c, d, id @ ..] = *bytes;
    let id = u32::from_le_bytes(id);
    let tag = match u16::from_le_bytes([a, b]) {
        USER_OBJ => AclTag::UserObj,
        USER_ID => AclTag::User(Uid::new(id)),
        GROUP_OBJ => AclTag::GroupObj,
        GROUP_ID => AclTag::Group(Gid::new(id)),
        MASK => AclTag::Mask,
        OTHER => AclTag::Other,
        _ => return Err(Errno::INVAL),
    };
    match u16::from_le_bytes([c, d]) {
        permissions @ 0..=7 => Ok(AclEntry { tag, permissions: permissions as u8 }),
        _ => Err(Errno::INVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acl_is_decoded_as_it_was_encoded() {
        let entry = |tag, permissions| AclEntry { tag, permissions };
        let entries = vec![
            entry(AclTag::UserObj, 7),
            entry(AclTag::User(Uid::new(1000)), 5),
            entry(AclTag::GroupObj, 4),
            entry(AclTag::Group(Gid::new(7)), 0),
            entry(AclTag::Mask, 7),
            entry(AclTag::Other, 1),
        ];
        let acl = Acl { entries };
        assert_eq!(decode(&encode(&acl)), Ok(acl));
    }

    #[test]
    fn an_acl_of_another_form_is_refused() {
        for value in
            [&[][..], &[1, 0, 0, 0], &[2, 0, 0, 0, 1], &[2, 0, 0, 0, 3, 0, 7, 0, 0, 0, 0, 0]]
        {
            assert_eq!(decode(value), Err(Errno::INVAL), "{value:?}");
        }
        assert_eq!(decode(&[2, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 0]), Err(Errno::INVAL));
    }

    #[test]
    fn attributes_of_other_kinds_are_not_supported() {
        assert!(matches!(Attribute::of(b"user.a"), Ok(Attribute::User(_))));
        assert!(matches!(Attribute::of(ACCESS), Ok(Attribute::Acl(AclKind::Access))));
        for name in [&b"security.capability"[..], b"trusted.a", b"user"] {
            assert!(matches!(Attribute::of(name), Err(Errno::OPNOTSUPP)));
        }
        assert!(matches!(Attribute::of(b"user."), Err(Errno::INVAL)));
    }
}

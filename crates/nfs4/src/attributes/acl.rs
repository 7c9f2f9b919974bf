//! Conversion between ACLs of NFSv4 and POSIX ACLs (RFC 8881, 6; draft-ietf-nfsv4-acl-mapping-05).
//! A POSIX ACL that is encoded and decoded again is unchanged. An ACL of NFSv4 that no POSIX ACL
//! can express is refused.

use comity_proto::nfs4::{Acl4, Nfsace4, Nfsstat4, ace};
use comity_vfs::{Acl, AclEntry, AclTag, Gid, Uid, Wire};
use comity_xdr::{Encoder, Opaque};

use super::owner::{self, Owners};

/// The rights that every user has, whatever the mode is.
const ANYONE: u32 = ace::READ_ATTRIBUTES | ace::READ_ACL | ace::SYNCHRONIZE;
/// The further rights that the owner has, whatever the mode is.
const OWNER: u32 = ace::WRITE_ATTRIBUTES | ace::WRITE_ACL;
const WRITE: u32 = ace::WRITE_DATA | ace::APPEND_DATA;
/// Flags of entries that apply to new objects in a directory, and not to the directory itself.
const INHERITED: u32 = ace::FILE_INHERIT | ace::DIRECTORY_INHERIT | ace::INHERIT_ONLY;
const INHERITS: u32 = ace::FILE_INHERIT | ace::DIRECTORY_INHERIT;
/// The flags that are supported.
const FLAGS: u32 = INHERITED | ace::IDENTIFIER_GROUP;

/// The ACL of an object, and the one that new objects inherit if the object is a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acls {
    pub(crate) access: Acl<Wire>,
    pub(crate) default: Option<Acl<Wire>>,
}

/// Encodes the entries of `acls`, with their count in front. `owners` gives the names of users and
/// groups.
pub(super) fn say(reply: &mut Encoder, owners: &impl Owners, acls: &Acls, is_dir: bool) {
    let count = reply.reserve::<4>();
    let mut saying = Saying { reply, owners, is_dir, entries: 0, flags: 0 };
    saying.acl(&acls.access);
    if let Some(default) = &acls.default {
        saying.flags = INHERITED;
        saying.acl(default);
    }
    let entries = saying.entries;
    reply.fill(count, |reply| reply.value(&entries));
}

struct Saying<'r, O> {
    reply: &'r mut Encoder,
    owners: &'r O,
    is_dir: bool,
    entries: u32,
    flags: u32,
}

/// The rights that the entries of an ACL permit, after the mask is applied.
struct Summary {
    owner: u8,
    users: u8,
    group: u8,
    groups: u8,
    other: u8,
    mask: u8,
}

impl Summary {
    fn of(acl: &Acl<Wire>) -> Self {
        let is_mask = |entry: &&AclEntry<Wire>| entry.tag == AclTag::Mask;
        let mask = acl.entries.iter().find(is_mask).map_or(7, |entry| entry.permissions);
        let mut sum = Self { owner: 0, users: 0, group: 0, groups: 0, other: 0, mask };
        for entry in &acl.entries {
            match entry.tag {
                AclTag::UserObj => sum.owner |= entry.permissions,
                AclTag::User(_) => sum.users |= entry.permissions & mask,
                AclTag::GroupObj => sum.group |= entry.permissions & mask,
                AclTag::Group(_) => sum.groups |= entry.permissions & mask,
                AclTag::Other => sum.other |= entry.permissions,
                AclTag::Mask => {}
            }
        }
        sum
    }
}

/// Entries are written in an order in which the first match decides as POSIX does. Since a user may
/// be in several groups, all entries that allow something to groups come before all that deny
/// something to groups.
impl<O: Owners> Saying<'_, O> {
    fn acl(&mut self, acl: &Acl<Wire>) {
        let sum = Summary::of(acl);
        let anybody = sum.group | sum.groups | sum.other;
        self.deny(AclTag::UserObj, !sum.owner & (sum.users | anybody));
        self.allow(AclTag::UserObj, sum.owner);
        for entry in &acl.entries {
            if let AclTag::User(_) = entry.tag {
                let permissions = entry.permissions & sum.mask;
                self.deny(entry.tag, !permissions & (anybody | sum.mask));
                self.allow(entry.tag, permissions);
            }
        }
        self.allow(AclTag::GroupObj, sum.group);
        let groups = acl.entries.iter().filter(|entry| matches!(entry.tag, AclTag::Group(_)));
        groups.clone().for_each(|entry| self.allow(entry.tag, entry.permissions & sum.mask));
        self.deny(AclTag::GroupObj, !sum.group & sum.other);
        for entry in groups {
            self.deny(entry.tag, !(entry.permissions & sum.mask) & sum.other);
        }
        self.allow(AclTag::Other, sum.other);
    }

    fn allow(&mut self, who: AclTag<Wire>, permissions: u8) {
        let own = if who == AclTag::UserObj { OWNER } else { 0 };
        self.entry(ace::ALLOWED, who, ANYONE | own | self.mask(permissions));
    }

    fn deny(&mut self, who: AclTag<Wire>, permissions: u8) {
        if permissions & 7 != 0 {
            self.entry(ace::DENIED, who, self.mask(permissions));
        }
    }

    fn mask(&self, permissions: u8) -> u32 {
        let bits = |bit, mask| if permissions & bit != 0 { mask } else { 0 };
        let write = if self.is_dir { WRITE | ace::DELETE_CHILD } else { WRITE };
        bits(4, ace::READ_DATA) | bits(2, write) | bits(1, ace::EXECUTE)
    }

    fn entry(&mut self, acetype: u32, who: AclTag<Wire>, mask: u32) {
        let group = match who {
            AclTag::GroupObj | AclTag::Group(_) => ace::IDENTIFIER_GROUP,
            _ => 0,
        };
        self.entries += 1;
        [acetype, self.flags | group, mask].iter().for_each(|word| self.reply.value(word));
        match who {
            AclTag::UserObj => self.reply.opaque(b"OWNER@"),
            AclTag::GroupObj => self.reply.opaque(b"GROUP@"),
            AclTag::User(uid) => owner::say(self.reply, self.owners.user_out(uid)),
            AclTag::Group(gid) => owner::say(self.reply, self.owners.group_out(gid)),
            AclTag::Mask | AclTag::Other => self.reply.opaque(b"EVERYONE@"),
        }
    }
}

/// Decodes an ACL of NFSv4 to POSIX ACLs. For a directory this includes the ACL that new objects
/// inherit.
///
/// # Errors
/// [`Nfsstat4::AttrNotSupp`] for an entry that is neither ALLOW nor DENY, [`Nfsstat4::Inval`] for
/// an unsupported flag, [`Nfsstat4::BadOwner`] for a user or group that the domain does not know.
pub(super) fn read(acl: &Acl4<'_>, owners: &impl Owners, is_dir: bool) -> Result<Acls, Nfsstat4> {
    let (mut own, mut inherited) = (Reading::default(), Reading::default());
    for entry in &acl.0 {
        if entry.flag & !FLAGS != 0 || entry.flag & INHERITED != 0 && !is_dir {
            return Err(Nfsstat4::Inval);
        }
        if entry.flag & INHERITS != 0 {
            inherited.entry(entry, owners)?;
        }
        if entry.flag & ace::INHERIT_ONLY == 0 {
            own.entry(entry, owners)?;
        }
    }
    complete(&mut inherited, &own, acl);
    let default = inherited.any.then(|| inherited.acl(is_dir));
    Ok(Acls { access: own.acl(is_dir), default })
}

/// Completes the inherited ACL. Owner, group and others inherit the directory's own permissions if
/// no entry names them, as with setfacl(1). A client that adds an inherited entry for one user does
/// not intend to exclude all others.
fn complete(inherited: &mut Reading, own: &Reading, acl: &Acl4<'_>) {
    let inherits = |entry: &&Nfsace4<'_>| entry.flag & INHERITS != 0;
    let says = |who: &[u8]| acl.0.iter().filter(inherits).any(|entry| entry.who.0 == who);
    if says(b"EVERYONE@") {
        return;
    }
    inherited.other = own.other;
    if !says(b"OWNER@") {
        inherited.owner.complete(own.owner);
    }
    if !says(b"GROUP@") {
        inherited.group.complete(own.group);
    }
}

/// The bits that were allowed and denied so far. The first entry that names a bit decides it.
#[derive(Clone, Copy, Default)]
struct Decided {
    allowed: u32,
    denied: u32,
}

impl Decided {
    const fn decide(&mut self, acetype: u32, mask: u32) {
        match acetype {
            ace::ALLOWED => self.allowed |= mask & !self.denied,
            _ => self.denied |= mask & !self.allowed,
        }
    }

    /// Decides the remaining bits as `by` does. Earlier decisions stay.
    const fn complete(&mut self, by: Self) {
        self.decide(ace::ALLOWED, by.allowed);
        self.decide(ace::DENIED, by.denied);
    }

    fn permissions(self, is_dir: bool) -> u8 {
        let write = if is_dir { WRITE | ace::DELETE_CHILD } else { WRITE };
        let has = |mask| self.allowed & mask == mask;
        let bit = |mask, bit| if has(mask) { bit } else { 0 };
        // Some clients do not set the right to delete children.
        let write = if has(WRITE) { WRITE } else { write };
        bit(ace::READ_DATA, 4) | bit(write, 2) | bit(ace::EXECUTE, 1)
    }
}

#[derive(Default)]
struct Reading {
    any: bool,
    owner: Decided,
    group: Decided,
    /// All users that are neither the owner nor in a group of the ACL.
    other: Decided,
    /// The decisions about all users so far; a user or group that is named later starts with them.
    everyone: Decided,
    users: Vec<(u32, Decided)>,
    groups: Vec<(u32, Decided)>,
}

impl Reading {
    fn entry(&mut self, entry: &Nfsace4<'_>, owners: &impl Owners) -> Result<(), Nfsstat4> {
        self.any = true;
        let (acetype, mask) = (entry.acetype, entry.access_mask);
        if !matches!(acetype, ace::ALLOWED | ace::DENIED) {
            return Err(Nfsstat4::AttrNotSupp);
        }
        let Opaque(who) = entry.who;
        match (who, entry.flag & ace::IDENTIFIER_GROUP != 0) {
            (b"OWNER@", _) => self.owner.decide(acetype, mask),
            (b"GROUP@", _) => {
                self.group.decide(acetype, mask);
                self.spread(acetype, self.group.denied, false);
            }
            (b"EVERYONE@", _) => self.spread(acetype, mask, true),
            (_, false) => {
                let user = named(&mut self.users, owners.user_in(who)?.number(), self.everyone);
                user.decide(acetype, mask);
                let denied = user.denied;
                if acetype == ace::DENIED {
                    self.owner.decide(acetype, denied);
                }
            }
            (_, true) => {
                let group = named(&mut self.groups, owners.group_in(who)?.number(), self.everyone);
                group.decide(acetype, mask);
                let denied = group.denied;
                self.spread(acetype, denied, false);
            }
        }
        Ok(())
    }

    /// Applies an entry to all callers. It is an entry for EVERYONE@, or one that denies something
    /// to a group, since any user may be in that group.
    fn spread(&mut self, acetype: u32, mask: u32, everybody: bool) {
        if acetype == ace::ALLOWED && !everybody {
            return;
        }
        let named = self.users.iter_mut().chain(&mut self.groups).map(|(_, decided)| decided);
        for decided in named.chain([&mut self.owner, &mut self.group, &mut self.everyone]) {
            decided.decide(acetype, mask);
        }
        if everybody {
            self.other.decide(acetype, mask);
        }
    }

    fn acl(&self, is_dir: bool) -> Acl<Wire> {
        let entry =
            |tag, decided: Decided| AclEntry { tag, permissions: decided.permissions(is_dir) };
        let mut entries = vec![entry(AclTag::UserObj, self.owner)];
        let sorted = |mut named: Vec<(u32, Decided)>| {
            named.sort_by_key(|(number, _)| *number);
            named
        };
        let users = sorted(self.users.clone()).into_iter();
        entries.extend(users.map(|(id, decided)| entry(AclTag::User(Uid::new(id)), decided)));
        entries.push(entry(AclTag::GroupObj, self.group));
        let groups = sorted(self.groups.clone()).into_iter();
        entries.extend(groups.map(|(id, decided)| entry(AclTag::Group(Gid::new(id)), decided)));
        if entries.len() > 2 {
            let permissions = entries.iter().skip(1).fold(0, |all, entry| all | entry.permissions);
            entries.push(AclEntry { tag: AclTag::Mask, permissions });
        }
        entries.push(entry(AclTag::Other, self.other));
        Acl { entries }
    }
}

/// Returns the decisions about a user or group; a new one begins with those about all users.
fn named(all: &mut Vec<(u32, Decided)>, number: u32, everyone: Decided) -> &mut Decided {
    let at = match all.iter().position(|(known, _)| *known == number) {
        Some(at) => at,
        None => {
            all.push((number, everyone));
            all.len() - 1
        }
    };
    #[expect(clippy::indexing_slicing, reason = "the place was just found or made")]
    &mut all[at].1
}

#[cfg(test)]
mod tests {
    use super::super::owner::tests::NamedOwners;
    use super::*;
    use comity_vfs::Mode;
    use comity_xdr::Decoder;

    fn encoded_and_decoded(acls: &Acls, is_dir: bool) -> Acls {
        let mut encoder = Encoder::new();
        say(&mut encoder, &NamedOwners, acls, is_dir);
        let said: Acl4<'_> = Decoder::whole(encoder.bytes()).unwrap();
        read(&said, &NamedOwners, is_dir).unwrap()
    }

    fn entry(tag: AclTag<Wire>, permissions: u8) -> AclEntry<Wire> {
        AclEntry { tag, permissions }
    }

    #[test]
    fn every_mode_comes_back() {
        for bits in 0..0o1000 {
            for is_dir in [false, true] {
                let acls = Acls { access: Acl::from_mode(Mode::new(bits)), default: None };
                assert_eq!(encoded_and_decoded(&acls, is_dir), acls, "{bits:o}");
            }
        }
    }

    /// The encoded ACL omits rights that the mask removes, since they have no effect.
    #[test]
    fn an_acl_with_names_is_read_back_as_far_as_its_mask_allows() {
        for digits in 0..8_u32.pow(5) {
            let digit = |at: u32| ((digits >> (3 * at)) & 7) as u8;
            let mask = digit(0) | digit(1) | digit(2);
            let access = Acl {
                entries: vec![
                    entry(AclTag::UserObj, digit(3)),
                    entry(AclTag::User(Uid::new(7)), digit(0)),
                    entry(AclTag::GroupObj, digit(1)),
                    entry(AclTag::Group(Gid::new(9)), digit(2)),
                    entry(AclTag::Mask, mask),
                    entry(AclTag::Other, digit(4)),
                ],
            };
            let acls = Acls { access: access.clone(), default: Some(access) };
            assert_eq!(encoded_and_decoded(&acls, true), acls);
        }
    }

    #[test]
    fn an_id_with_a_name_is_shown_by_name() {
        let access = Acl {
            entries: vec![
                entry(AclTag::UserObj, 7),
                entry(AclTag::User(Uid::new(7)), 4),
                entry(AclTag::GroupObj, 4),
                entry(AclTag::Group(Gid::new(9)), 4),
                entry(AclTag::Mask, 4),
                entry(AclTag::Other, 0),
            ],
        };
        let mut encoder = Encoder::new();
        say(&mut encoder, &NamedOwners, &Acls { access, default: None }, false);
        let said: Acl4<'_> = Decoder::whole(encoder.bytes()).unwrap();
        let called = |name: &[u8]| said.0.iter().any(|entry| entry.who.0 == name);
        assert!(called(b"alice@a") && called(b"staff@a"));
        let stranger = Nfsace4 { acetype: 0, flag: 0, access_mask: 1, who: Opaque(b"staff@a") };
        let stranger = comity_xdr::Counted(vec![stranger]);
        assert_eq!(
            read(&stranger, &NamedOwners, false),
            Err(Nfsstat4::BadOwner),
            "that is a group"
        );
    }

    /// A denied user may be the owner of a new object, or in its group.
    #[test]
    fn an_inherited_denial_applies_if_no_other_entry_does() {
        let ace = |acetype, flag, access_mask, who| Nfsace4 {
            acetype,
            flag,
            access_mask,
            who: Opaque(who),
        };
        let all = ace::READ_DATA | WRITE | ace::DELETE_CHILD | ace::EXECUTE;
        let only = ace::FILE_INHERIT | ace::INHERIT_ONLY;
        let denied = |flag, who| {
            let [owner, group, others] =
                [&b"OWNER@"[..], b"GROUP@", b"EVERYONE@"].map(|who| ace(0, 0, all, who));
            let denial = ace(1, only | flag, ace::READ_DATA, who);
            let said = comity_xdr::Counted(vec![denial, owner, group, others]);
            let default = read(&said, &NamedOwners, true).unwrap().default.unwrap();
            let has = |tag| default.entries.iter().find(|it| it.tag == tag).unwrap().permissions;
            [AclTag::UserObj, AclTag::GroupObj, AclTag::Other].map(has)
        };
        assert_eq!(denied(ace::IDENTIFIER_GROUP, b"9"), [3, 3, 7]);
        assert_eq!(denied(0, b"7"), [3, 7, 7]);
    }

    #[test]
    fn an_acl_that_posix_cannot_express_is_refused() {
        let entry = |acetype, flag| Nfsace4 { acetype, flag, access_mask: 1, who: Opaque(b"5") };
        let read = |entry| read(&comity_xdr::Counted(vec![entry]), &NamedOwners, false);
        assert_eq!(read(entry(2, 0)), Err(Nfsstat4::AttrNotSupp));
        assert_eq!(read(entry(0, ace::FILE_INHERIT)), Err(Nfsstat4::Inval));
        assert_eq!(read(entry(0, 0x10)), Err(Nfsstat4::Inval));
    }
}

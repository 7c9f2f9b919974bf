use std::sync::Arc;

use comity_ranges::SharedCache;
use comity_vfs::{Acl, AclEntry, AclTag, Attr, Cred, Disk, Gid, SetAttr, Uid, Wire};

use crate::squash::NO_ID;
use crate::{IdMap, IdOutcome, MapDefault, Owners, Squash, Step, Unmapped};

/// The mapping between the ids of one domain and those on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    /// The ids that are squashed before any range applies.
    pub squash: Squash,
    /// The ids under which squashed callers act.
    pub anonymous: Cred<Disk>,
    /// Users.
    pub users: IdMap,
    /// Groups.
    pub groups: IdMap,
    /// The treatment of a user in no range, if there are ranges for users; the same for groups.
    pub default: MapDefault,
    /// The names of users and groups in NFSv4.
    pub owners: Owners,
}

/// The error for a call whose user or group is in no range of a domain that denies such ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The user.
    #[error("uid {0} is in no range")]
    User(Uid<Wire>),
    /// The primary group.
    #[error("gid {0} is in no range")]
    Group(Gid<Wire>),
}

/// The id that no file and no caller has.
const NOBODY: u32 = u32::MAX;

/// A caller with its ids on disk and on the wire. A caller always sees its own files as its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its user on disk, and the uid that the call claimed, or [`NOBODY`] if it claimed none.
    user: (Uid<Disk>, Uid<Wire>),
    group: (Gid<Disk>, Gid<Wire>),
    disk: Arc<Cred<Disk>>,
    squashed: bool,
    /// True if a key proved the caller, so that its ids on disk are independent of the claimed
    /// ones.
    proved: bool,
    /// Caches of recently mapped users and groups, if the map is not empty.
    users: Option<SharedCache>,
    groups: Option<SharedCache>,
}

/// An object's user and group as they are shown if no ids are mapped.
#[must_use]
#[inline(always)]
pub const fn unmapped(attr: &Attr<Disk>) -> (Uid<Wire>, Gid<Wire>) {
    (attr.uid.carried_over(), attr.gid.carried_over())
}

impl Caller {
    /// Returns whether its user or group was replaced by the anonymous one.
    #[must_use]
    pub const fn is_squashed(&self) -> bool {
        self.squashed
    }

    /// The credential under which it acts.
    #[must_use]
    pub fn disk(&self) -> &Cred<Disk> {
        &self.disk
    }

    /// The same credential, shared.
    #[must_use]
    pub const fn kept(&self) -> &Arc<Cred<Disk>> {
        &self.disk
    }
}

impl Default for Ids {
    /// Squashes root to 65534, without ranges.
    fn default() -> Self {
        Self {
            squash: Squash::Root,
            anonymous: Cred::new(Uid::new(65_534), Gid::new(65_534)),
            users: IdMap::empty(),
            groups: IdMap::empty(),
            default: MapDefault::Squash,
            owners: Owners::default(),
        }
    }
}

impl Ids {
    /// Returns the caller for a call without ids.
    #[must_use]
    pub fn nobody(&self) -> Caller {
        self.caller(None, self.anonymous.clone(), true)
    }

    /// Returns the caller for a call that claims the ids `wire`. A supplementary group in no range
    /// is dropped, unless such ids pass; it never becomes the anonymous group.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn admit(&self, wire: &Cred<Wire>) -> Result<Caller, Denied> {
        let uid = self.user_in(wire.uid).ok_or(Denied::User(wire.uid))?;
        if self.squash == Squash::All {
            return Ok(self.caller(Some((wire.uid, wire.gid)), self.anonymous.clone(), true));
        }
        let gid = self.group_in(wire.gid).ok_or(Denied::Group(wire.gid))?;
        let groups = wire.groups.iter().filter_map(|&gid| self.supplementary_in(gid));
        let disk = Cred::new(uid, gid).with_groups(groups);
        let fates = [self.user_fate(wire.uid), self.group_fate(wire.gid)];
        let squashed = fates
            .iter()
            .any(|outcome| matches!(outcome, IdOutcome::Squashed | IdOutcome::Anonymous));
        Ok(self.caller(Some((wire.uid, wire.gid)), disk, squashed))
    }

    /// Returns the caller for a call whose key proved this user, whatever ids the call claims: the
    /// caller sees this user's files as its own.
    #[must_use]
    pub fn proved(&self, wire: Option<&Cred<Wire>>, disk: Cred<Disk>) -> Caller {
        let claimed = wire.map(|wire| (wire.uid, wire.gid));
        Caller { proved: true, ..self.caller(claimed, disk, true) }
    }

    fn caller(
        &self,
        wire: Option<(Uid<Wire>, Gid<Wire>)>,
        disk: Cred<Disk>,
        squashed: bool,
    ) -> Caller {
        let (users, groups) = (self.users.recent(), self.groups.recent());
        let (user, group) = match wire {
            Some((uid, gid)) => ((disk.uid, uid), (disk.gid, gid)),
            None => {
                let shown = |anonymous| self.out(None, NOBODY, anonymous);
                let user = Uid::new(shown(self.anonymous.uid.number()));
                let group = Gid::new(shown(self.anonymous.gid.number()));
                ((Uid::new(NOBODY), user), (Gid::new(NOBODY), group))
            }
        };
        Caller { user, group, disk: Arc::new(disk), squashed, proved: false, users, groups }
    }

    /// The user and group of an object as a caller sees them.
    #[must_use]
    pub fn shown(&self, caller: &Caller, attr: &Attr<Disk>) -> (Uid<Wire>, Gid<Wire>) {
        (self.user_out(caller, attr.uid), self.group_out(caller, attr.gid))
    }

    /// The same for a caller that was not proved by a key. Listings call it for each entry.
    #[must_use]
    #[inline(always)]
    pub fn mapped(&self, caller: &Caller, attr: &Attr<Disk>) -> (Uid<Wire>, Gid<Wire>) {
        (self.mapped_user(caller, attr.uid), self.mapped_group(caller, attr.gid))
    }

    /// Converts attributes to set to those on disk.
    ///
    /// # Errors
    /// [`Unmapped`] if the domain has no id for the owner or group; an owner is never replaced by
    /// another one.
    pub fn set_in(&self, set: &SetAttr<Wire>) -> Result<SetAttr<Disk>, Unmapped> {
        let uid = set.uid.map(|uid| self.owner_in(uid)).transpose()?;
        let gid = set.gid.map(|gid| self.owner_group_in(gid)).transpose()?;
        Ok(set.with_ids(uid, gid))
    }

    /// An ACL as a caller sees it.
    #[must_use]
    pub fn acl_out(&self, caller: &Caller, acl: &Acl<Disk>) -> Acl<Wire> {
        let entry = |entry: &AclEntry<Disk>| AclEntry {
            tag: match entry.tag {
                AclTag::User(uid) => AclTag::User(self.user_out(caller, uid)),
                AclTag::Group(gid) => AclTag::Group(self.group_out(caller, gid)),
                AclTag::UserObj => AclTag::UserObj,
                AclTag::GroupObj => AclTag::GroupObj,
                AclTag::Mask => AclTag::Mask,
                AclTag::Other => AclTag::Other,
            },
            permissions: entry.permissions,
        };
        Acl { entries: acl.entries.iter().map(entry).collect() }
    }

    /// Converts an ACL to set to that on disk.
    ///
    /// # Errors
    /// [`Unmapped`] if the domain has no id for a user or group in it.
    pub fn acl_in(&self, acl: &Acl<Wire>) -> Result<Acl<Disk>, Unmapped> {
        let entry = |entry: &AclEntry<Wire>| {
            let tag = match entry.tag {
                AclTag::User(uid) => AclTag::User(self.owner_in(uid)?),
                AclTag::Group(gid) => AclTag::Group(self.owner_group_in(gid)?),
                AclTag::UserObj => AclTag::UserObj,
                AclTag::GroupObj => AclTag::GroupObj,
                AclTag::Mask => AclTag::Mask,
                AclTag::Other => AclTag::Other,
            };
            Ok(AclEntry { tag, permissions: entry.permissions })
        };
        Ok(Acl { entries: acl.entries.iter().map(entry).collect::<Result<_, _>>()? })
    }

    /// Returns the uid by which a caller sees a user on disk.
    #[must_use]
    pub fn user_out(&self, caller: &Caller, uid: Uid<Disk>) -> Uid<Wire> {
        let (own, said) = caller.user;
        if caller.proved && uid == own { said } else { self.mapped_user(caller, uid) }
    }

    #[inline(always)]
    fn mapped_user(&self, caller: &Caller, uid: Uid<Disk>) -> Uid<Wire> {
        let (own, said) = caller.user;
        let Some(recent) = &caller.users else { return uid.carried_over() };
        if uid == own {
            return said;
        }
        let shown = self.users.shown(recent, uid.number());
        Uid::new(self.out(shown, uid.number(), self.anonymous.uid.number()))
    }

    /// Returns the gid by which a caller sees a group on disk.
    #[must_use]
    pub fn group_out(&self, caller: &Caller, gid: Gid<Disk>) -> Gid<Wire> {
        let (own, said) = caller.group;
        if caller.proved && gid == own { said } else { self.mapped_group(caller, gid) }
    }

    #[inline(always)]
    fn mapped_group(&self, caller: &Caller, gid: Gid<Disk>) -> Gid<Wire> {
        let Some(recent) = &caller.groups else { return gid.carried_over() };
        let (own, said) = caller.group;
        if gid == own {
            return said;
        }
        let shown = self.groups.shown(recent, gid.number());
        Gid::new(self.out(shown, gid.number(), self.anonymous.gid.number()))
    }

    /// Maps a client's user.
    #[must_use]
    pub fn user_fate(&self, uid: Uid<Wire>) -> IdOutcome {
        self.outcome(&self.users, uid.number())
    }

    /// Maps a client's primary group.
    #[must_use]
    pub fn group_fate(&self, gid: Gid<Wire>) -> IdOutcome {
        self.outcome(&self.groups, gid.number())
    }

    fn outcome(&self, map: &IdMap, wire: u32) -> IdOutcome {
        if self.squash.replaces(wire) {
            return IdOutcome::Squashed;
        }
        match (map.to_disk(wire), self.default) {
            (Step::Mapped { disk, rule }, _) => IdOutcome::Mapped { disk, rule },
            (Step::Uncovered, _) if map.is_empty() => IdOutcome::Unmapped,
            (Step::Uncovered, MapDefault::Pass) => IdOutcome::Passed,
            (Step::Uncovered, MapDefault::Squash) => IdOutcome::Anonymous,
            (Step::Uncovered, MapDefault::Deny) => IdOutcome::Denied,
        }
    }

    fn user_in(&self, uid: Uid<Wire>) -> Option<Uid<Disk>> {
        let anonymous = self.anonymous.uid.number();
        self.acting_in(&self.users, uid.number(), anonymous).map(Uid::new)
    }

    fn group_in(&self, gid: Gid<Wire>) -> Option<Gid<Disk>> {
        let anonymous = self.anonymous.gid.number();
        self.acting_in(&self.groups, gid.number(), anonymous).map(Gid::new)
    }

    /// The id under which a caller acts; `None` if the call is denied.
    fn acting_in(&self, map: &IdMap, wire: u32, anonymous: u32) -> Option<u32> {
        match self.outcome(map, wire) {
            IdOutcome::Mapped { disk, .. } => Some(disk),
            IdOutcome::Unmapped | IdOutcome::Passed => Some(wire),
            IdOutcome::Squashed | IdOutcome::Anonymous => Some(anonymous),
            IdOutcome::Denied => None,
        }
    }

    fn supplementary_in(&self, gid: Gid<Wire>) -> Option<Gid<Disk>> {
        if self.squash.replaces(gid.number()) {
            return Some(self.anonymous.gid);
        }
        self.owner_group_in(gid).ok()
    }

    fn owner_in(&self, uid: Uid<Wire>) -> Result<Uid<Disk>, Unmapped> {
        self.set_one(&self.users, uid.number()).map(Uid::new)
    }

    fn owner_group_in(&self, gid: Gid<Wire>) -> Result<Gid<Disk>, Unmapped> {
        self.set_one(&self.groups, gid.number()).map(Gid::new)
    }

    fn set_one(&self, map: &IdMap, wire: u32) -> Result<u32, Unmapped> {
        match map.to_disk(wire) {
            _ if wire == NO_ID => Err(Unmapped),
            Step::Mapped { disk, .. } => Ok(disk),
            Step::Uncovered if map.is_empty() || self.default == MapDefault::Pass => Ok(wire),
            Step::Uncovered => Err(Unmapped),
        }
    }

    #[inline(always)]
    fn out(&self, shown: Option<u32>, disk: u32, anonymous: u32) -> u32 {
        match shown {
            Some(wire) => wire,
            None if self.default == MapDefault::Pass => disk,
            None => anonymous,
        }
    }
}

use crate::limits::ACL_ENTRIES_MAX;
use crate::{Gid, IdDomain, Mode, Result, Status, Uid};

/// A POSIX ACL (POSIX.1e draft 17, as Linux stores it), with ids on side `S`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Acl<S: IdDomain> {
    /// The entries, in the order in which they are stored.
    pub entries: Vec<AclEntry<S>>,
}

/// One entry of an ACL: to whom it applies, and the permission digit (4 read, 2 write, 1 execute).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AclEntry<S: IdDomain> {
    /// The users that the entry applies to.
    pub tag: AclTag<S>,
    /// The permissions: 0 to 7.
    pub permissions: u8,
}

/// The users that an ACL entry applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AclTag<S: IdDomain> {
    /// The file's owner.
    UserObj,
    /// This user.
    User(Uid<S>),
    /// The file's group.
    GroupObj,
    /// This group.
    Group(Gid<S>),
    /// The upper bound of the permissions of named users and of all groups.
    Mask,
    /// All other users.
    Other,
}

/// One of an object's two ACLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AclKind {
    /// The ACL that decides about access to the object itself.
    Access,
    /// The ACL that new entries of a directory inherit.
    Default,
}

impl<S: IdDomain> Acl<S> {
    /// Returns the ACL of three entries that is equivalent to `mode`.
    #[must_use]
    pub fn from_mode(mode: Mode) -> Self {
        let entry = |tag, shift| AclEntry { tag, permissions: (mode.bits() >> shift) as u8 & 7 };
        let tags = [(AclTag::UserObj, 6), (AclTag::GroupObj, 3), (AclTag::Other, 0)];
        Self { entries: tags.into_iter().map(|(tag, shift)| entry(tag, shift)).collect() }
    }

    /// Checks the ACL (POSIX.1e draft 17, 23.1.3, in the order Linux asks for): one owner entry,
    /// named users, one group entry, named groups, a mask if any are named, one entry for others.
    ///
    /// # Errors
    /// [`Status::Inval`] if the ACL is malformed.
    pub fn check(&self) -> Result<()> {
        let ranks = self.entries.iter().map(|entry| entry.tag.rank());
        let ordered = ranks.clone().zip(ranks.clone().skip(1)).all(|(one, next)| {
            one < next || one == next && (one == RANK_USER || one == RANK_GROUP)
        });
        let has = |rank| ranks.clone().any(|one| one == rank);
        let named = has(RANK_USER) || has(RANK_GROUP);
        let complete = has(RANK_USER_OBJ) && has(RANK_GROUP_OBJ) && has(RANK_OTHER);
        let digits = self.entries.iter().all(|entry| entry.permissions <= 7);
        let few = self.entries.len() <= ACL_ENTRIES_MAX;
        if ordered && complete && digits && few && (!named || has(RANK_MASK)) {
            Ok(())
        } else {
            Err(Status::Inval)
        }
    }

    /// Returns whether a mode is equivalent to the ACL: no user or group is named, and there is no
    /// mask.
    #[must_use]
    pub fn is_minimal(&self) -> bool {
        self.entries
            .iter()
            .all(|entry| matches!(entry.tag, AclTag::UserObj | AclTag::GroupObj | AclTag::Other))
    }

    /// Returns `mode` with the permission bits that follow from this ACL; the group's bits are
    /// those of the mask, if there is one.
    #[must_use]
    pub fn mode(&self, mode: Mode) -> Mode {
        let digit = |tag| self.entries.iter().find(|entry| entry.tag == tag);
        let shifted = |found: Option<&AclEntry<S>>, shift| {
            found.map_or(0, |entry| u32::from(entry.permissions & 7) << shift)
        };
        let group = digit(AclTag::Mask).or_else(|| digit(AclTag::GroupObj));
        Mode::new(
            mode.bits() & 0o7000
                | shifted(digit(AclTag::UserObj), 6)
                | shifted(group, 3)
                | shifted(digit(AclTag::Other), 0),
        )
    }

    /// This ACL after a chmod to `mode`: owner, mask (or group, if there is no mask) and others
    /// follow.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        let group = self.group_class();
        for entry in &mut self.entries {
            if let Some(shift) = class_shift(entry.tag, group) {
                entry.permissions = (mode.bits() >> shift) as u8 & 7;
            }
        }
        self
    }

    /// The ACL that a new object inherits from its directory's default ACL if it is made with
    /// `mode`: no more than both allow.
    #[must_use]
    pub fn inherited(mut self, mode: Mode) -> (Self, Mode) {
        let group = self.group_class();
        for entry in &mut self.entries {
            if let Some(shift) = class_shift(entry.tag, group) {
                entry.permissions &= (mode.bits() >> shift) as u8 & 7;
            }
        }
        let mode = self.mode(mode);
        (self, mode)
    }

    fn group_class(&self) -> AclTag<S> {
        let masked = self.entries.iter().any(|entry| entry.tag == AclTag::Mask);
        if masked { AclTag::Mask } else { AclTag::GroupObj }
    }
}

const RANK_USER_OBJ: u8 = 0;
const RANK_USER: u8 = 1;
const RANK_GROUP_OBJ: u8 = 2;
const RANK_GROUP: u8 = 3;
const RANK_MASK: u8 = 4;
const RANK_OTHER: u8 = 5;

impl<S: IdDomain> AclTag<S> {
    const fn rank(self) -> u8 {
        match self {
            Self::UserObj => RANK_USER_OBJ,
            Self::User(_) => RANK_USER,
            Self::GroupObj => RANK_GROUP_OBJ,
            Self::Group(_) => RANK_GROUP,
            Self::Mask => RANK_MASK,
            Self::Other => RANK_OTHER,
        }
    }
}

/// The shift of an entry's digit in a mode, if the entry goes with the mode.
fn class_shift<S: IdDomain>(tag: AclTag<S>, group: AclTag<S>) -> Option<u32> {
    match tag {
        AclTag::UserObj => Some(6),
        AclTag::Other => Some(0),
        _ if tag == group => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Disk;

    fn acl(entries: &[(AclTag<Disk>, u8)]) -> Acl<Disk> {
        let entry = |&(tag, permissions)| AclEntry { tag, permissions };
        Acl { entries: entries.iter().map(entry).collect() }
    }

    fn named() -> Acl<Disk> {
        acl(&[
            (AclTag::UserObj, 7),
            (AclTag::User(Uid::new(5)), 6),
            (AclTag::GroupObj, 5),
            (AclTag::Mask, 4),
            (AclTag::Other, 1),
        ])
    }

    #[test]
    fn an_acl_needs_its_order_and_its_mask() {
        assert_eq!(named().check(), Ok(()));
        assert_eq!(Acl::<Disk>::from_mode(Mode::new(0o640)).check(), Ok(()));
        for missing in 0..5 {
            let mut short = named();
            short.entries.remove(missing);
            let fine = missing == 1;
            assert_eq!(short.check().is_ok(), fine, "without entry {missing}");
        }
        let mut swapped = named();
        swapped.entries.swap(1, 2);
        assert_eq!(swapped.check(), Err(Status::Inval));
        let mut twice = named();
        twice.entries.insert(0, AclEntry { tag: AclTag::UserObj, permissions: 7 });
        assert_eq!(twice.check(), Err(Status::Inval));
    }

    #[test]
    fn the_groups_digit_is_the_mask() {
        assert_eq!(named().mode(Mode::new(0o4000)), Mode::new(0o4741));
        let changed = named().with_mode(Mode::new(0o620));
        assert_eq!(changed.mode(Mode::default()), Mode::new(0o620));
        assert!(changed.entries.contains(&AclEntry { tag: AclTag::GroupObj, permissions: 5 }));
    }

    #[test]
    fn a_new_object_gets_no_more_than_both_allow() {
        let (acl, mode) = named().inherited(Mode::new(0o666));
        assert_eq!(mode, Mode::new(0o640));
        assert_eq!(acl.mode(Mode::default()), mode);
        assert!(!acl.is_minimal());
    }
}

use std::sync::Arc;

use comity_ranges::{Builder, LookupCache, Ranges};
use comity_vfs::{Cred, Disk, Gid, Mode, Uid};

use crate::{CloakEntry, Mask, Owned};

/// The bits of a mode for group and others.
const GROUP: u32 = 0o070;
const OTHER: u32 = 0o007;

/// The cloak entries of one export for one client, in their order of precedence. A clone is
/// cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloak {
    /// The number of the first entry that covers an owner, and a group.
    users: Ranges<u32>,
    groups: Ranges<u32>,
    entries: Arc<[CloakEntry]>,
    /// The masks of owners that were looked up recently, for cloaks without entries for
    /// groups.
    recent: LookupCache,
}

/// The decision about a file and its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The caller is the server's root.
    Root,
    /// No entry covers owner or group.
    Uncovered,
    /// The file is the caller's own.
    Owner,
    /// The mask of the entry with this number lets the caller see it.
    Shown(u32),
    /// The entry with this number hides it.
    Hidden(u32),
}

impl Verdict {
    /// Returns whether the caller may know of it.
    #[must_use]
    pub const fn is_visible(self) -> bool {
        !matches!(self, Self::Hidden(_))
    }
}

impl Cloak {
    /// Takes the entries in order; also returns the numbers of entries that never match
    /// because earlier ones cover all of their ids.
    #[must_use]
    pub fn new(entries: &[CloakEntry]) -> (Self, Vec<u32>) {
        let (mut users, mut groups) = (Builder::new(), Builder::new());
        let mut shadowed = Vec::new();
        for (number, entry) in (0_u32..).zip(entries) {
            let table = match entry.owned {
                Owned::ByUser => &mut users,
                Owned::ByGroup => &mut groups,
            };
            if table.add(entry.ids, number).is_empty() {
                shadowed.push(number);
            }
        }
        let entries = entries.into();
        let (users, groups, recent) = (users.build(), groups.build(), LookupCache::default());
        (Self { users, groups, entries, recent }, shadowed)
    }

    /// Returns the entries by number, including those that never match.
    #[must_use]
    pub fn entries(&self) -> &[CloakEntry] {
        &self.entries
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }

    /// The number of the entry that covers files of this owner and group, so that not everybody may
    /// see them.
    #[must_use]
    pub fn covering(&self, owner: Uid<Disk>, group: Gid<Disk>) -> Option<u32> {
        self.first(owner, group).map(|(entry, _)| entry)
    }

    /// Returns whether `caller`, in ids on disk, may know of a file with this owner, group and
    /// mode: the answer of [`Cloak::verdict`] without a reason.
    #[must_use]
    #[inline(always)]
    pub fn shows(
        &self,
        caller: &Cred<Disk>,
        owner: Uid<Disk>,
        group: Gid<Disk>,
        mode: Mode,
    ) -> bool {
        // A caller's own files are never hidden from it.
        if caller.uid == owner {
            return true;
        }
        // Only without entries of groups there is a cache, so that one check decides for each file.
        let Some(recent) = self.recent.allocated() else {
            return self.shows_uncached(caller, owner, group, mode);
        };
        let owner = owner.number();
        let Some(word) = recent.get_or(owner, move || self.word(owner)) else { return true };
        // Nothing is hidden from root, which is checked last because few callers are root.
        Mask::from_word(word).shows(mode.bits(), class(caller, group)) || caller.is_root()
    }

    /// Returns the same without the cache, and allocates the cache where it is of use.
    #[inline(never)]
    fn shows_uncached(
        &self,
        caller: &Cred<Disk>,
        owner: Uid<Disk>,
        group: Gid<Disk>,
        mode: Mode,
    ) -> bool {
        if self.groups.is_empty() {
            let _ = self.recent.kept();
        }
        self.verdict(caller, owner, group, mode).is_visible()
    }

    /// Decides if `caller`, in ids on disk, may know of a file with this owner, group and mode.
    #[must_use]
    #[inline]
    pub fn verdict(
        &self,
        caller: &Cred<Disk>,
        owner: Uid<Disk>,
        group: Gid<Disk>,
        mode: Mode,
    ) -> Verdict {
        if caller.is_root() {
            return Verdict::Root;
        }
        let Some((entry, mask)) = self.first(owner, group) else { return Verdict::Uncovered };
        if caller.uid == owner {
            return Verdict::Owner;
        }
        if mask.shows(mode.bits(), class(caller, group)) {
            Verdict::Shown(entry)
        } else {
            Verdict::Hidden(entry)
        }
    }

    /// The mask of the entry that covers an owner first, as it is kept.
    fn word(&self, owner: u32) -> Option<u32> {
        let first = *self.users.value(owner)?;
        self.entries.get(first as usize).map(|entry| entry.mask.to_word())
    }

    /// The first entry, of users and groups together, that covers a file: its number and mask.
    fn first(&self, owner: Uid<Disk>, group: Gid<Disk>) -> Option<(u32, Mask)> {
        let by_user = self.users.value(owner.number());
        let by_group = self.groups.value(group.number());
        let first = by_user.into_iter().chain(by_group).copied().min()?;
        self.entries.get(first as usize).map(|entry| (first, entry.mask))
    }
}

/// The bits of a mode that count for a caller.
#[inline]
fn class(caller: &Cred<Disk>, group: Gid<Disk>) -> u32 {
    if caller.is_member(group) { GROUP } else { OTHER }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sign;
    use comity_ranges::Range;
    use proptest::prelude::*;

    fn entry(owned: Owned, first: u32, last: u32, mask: &str) -> CloakEntry {
        CloakEntry { owned, ids: Range { first, last }, mask: mask.parse().unwrap() }
    }

    fn cred(uid: u32, gid: u32, groups: &[u32]) -> Cred<Disk> {
        Cred::new(Uid::new(uid), Gid::new(gid)).with_groups(groups.iter().copied().map(Gid::new))
    }

    fn visible(
        entries: &[CloakEntry],
        caller: &Cred<Disk>,
        owner: u32,
        group: u32,
        mode: u32,
    ) -> bool {
        let (cloak, _) = Cloak::new(entries);
        cloak.verdict(caller, Uid::new(owner), Gid::new(group), Mode::new(mode)).is_visible()
    }

    #[test]
    fn plus_000_shows_files_to_their_owners_alone() {
        let all = [entry(Owned::ByUser, 0, u32::MAX, "+000")];
        assert!(visible(&all, &cred(1000, 100, &[]), 1000, 100, 0o777));
        assert!(!visible(&all, &cred(1001, 100, &[]), 1000, 100, 0o777));
        assert!(visible(&all, &cred(0, 0, &[]), 1000, 100, 0));
    }

    #[test]
    fn plus_070_shows_files_to_their_group_with_any_right() {
        let all = [entry(Owned::ByUser, 1000, 1999, "+070")];
        assert!(visible(&all, &cred(1, 2, &[100]), 1000, 100, 0o010));
        assert!(!visible(&all, &cred(1, 2, &[100]), 1000, 100, 0o707));
        assert!(!visible(&all, &cred(1, 2, &[]), 1000, 100, 0o777));
        assert!(visible(&all, &cred(1, 2, &[]), 999, 100, 0));
    }

    #[test]
    fn minus_004_shows_files_only_where_the_world_may_read() {
        let all = [entry(Owned::ByUser, 0, 9999, "-004")];
        assert!(visible(&all, &cred(1, 2, &[]), 1000, 100, 0o644));
        assert!(!visible(&all, &cred(1, 2, &[]), 1000, 100, 0o641));
        assert!(!visible(&all, &cred(1, 100, &[]), 1000, 100, 0o644), "no digit for the group");
    }

    #[test]
    fn the_first_entry_of_users_and_groups_together_decides() {
        let (hide, show) = ("+000", "+007");
        let order = |a, b| {
            let entries = [entry(Owned::ByGroup, 100, 100, a), entry(Owned::ByUser, 1000, 1000, b)];
            visible(&entries, &cred(1, 2, &[]), 1000, 100, 0o644)
        };
        assert!(!order(hide, show));
        assert!(order(show, hide));
    }

    #[test]
    fn an_entry_that_can_never_be_met_is_told() {
        let entries = [
            entry(Owned::ByUser, 0, 99, "+000"),
            entry(Owned::ByUser, 10, 20, "+007"),
            entry(Owned::ByGroup, 10, 20, "+007"),
        ];
        assert_eq!(Cloak::new(&entries).1, [1]);
    }

    #[test]
    fn the_first_entry_that_covers_a_file_is_found_by_its_number() {
        let entries = [
            entry(Owned::ByUser, 10, 19, "+070"),
            entry(Owned::ByUser, 30, 39, "+070"),
            entry(Owned::ByGroup, 7, 7, "+000"),
        ];
        let (cloak, _) = Cloak::new(&entries);
        assert_eq!(cloak.entries(), entries);
        let covering = |owner, group| cloak.covering(Uid::new(owner), Gid::new(group));
        assert_eq!(covering(15, 7), Some(0));
        assert_eq!(covering(30, 1), Some(1));
        assert_eq!(covering(1, 7), Some(2));
        assert_eq!(covering(1, 1), None);
    }

    #[test]
    fn a_cloak_with_entries_of_one_kind_is_not_empty() {
        assert!(Cloak::new(&[]).0.is_empty());
        for owned in [Owned::ByUser, Owned::ByGroup] {
            assert!(!Cloak::new(&[entry(owned, 1, 2, "+000")]).0.is_empty(), "{owned:?}");
        }
    }

    #[test]
    fn masks_are_read_as_they_are_written() {
        assert_eq!("-640".parse(), Ok(Mask { sign: Sign::All, bits: 0o640 }));
        for text in ["-640", "+777", "-777", "+000"] {
            let mask: Mask = text.parse().unwrap();
            assert_eq!((mask.to_string().as_str(), Mask::from_word(mask.to_word())), (text, mask));
        }
        for bad in ["", "+", "070", "+08", "+0700", "+79", "+79a", "*000"] {
            assert!(bad.parse::<Mask>().is_err(), "{bad}");
        }
    }

    proptest! {
        /// The rule is that of docs/semantics.md.
        #[test]
        fn the_verdict_is_that_of_the_written_rule(
            entries in proptest::collection::vec(
                (any::<bool>(), 0..6_u32, 0..4_u32, any::<bool>(), 0..0o1000_u16),
                0..6,
            ),
            caller in (0..6_u32, 0..6_u32, proptest::collection::vec(0..6_u32, 0..3)),
            owner in 0..6_u32, group in 0..6_u32, mode in 0..0o1000_u32,
        ) {
            let entry = |(user, first, more, plus, bits)| CloakEntry {
                owned: if user { Owned::ByUser } else { Owned::ByGroup },
                ids: Range { first, last: first + more },
                mask: Mask { sign: if plus { Sign::Any } else { Sign::All }, bits },
            };
            let entries: Vec<_> = entries.into_iter().map(entry).collect();
            let caller = cred(caller.0, caller.1, &caller.2);
            let first = entries.iter().find(|entry| entry.ids.covers(match entry.owned {
                Owned::ByUser => owner,
                Owned::ByGroup => group,
            }));
            let expected = match first {
                _ if caller.uid.number() == 0 => true,
                None => true,
                _ if caller.uid.number() == owner => true,
                Some(entry) => {
                    let member = caller.is_member(Gid::new(group));
                    let digit = |of: u32| if member { of / 8 % 8 } else { of % 8 };
                    let (bits, mode) = (digit(u32::from(entry.mask.bits)), digit(mode));
                    match entry.mask.sign {
                        Sign::Any => mode & bits != 0,
                        Sign::All => bits != 0 && mode & bits == bits,
                    }
                }
            };
            prop_assert_eq!(visible(&entries, &caller, owner, group, mode), expected);
            let shown = Cloak::new(&entries).0.shows(
                &caller, Uid::new(owner), Gid::new(group), Mode::new(mode),
            );
            prop_assert_eq!(shown, expected);
        }
    }
}

use super::Holder;
use super::holders::Holders;
use crate::directories::NoticeWishes;
use crate::{ClientId, LockType};

/// The access of an open, and the access that it denies to others (`share_access`, `share_deny`;
/// RFC 8881, 18.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Share {
    /// Bits [`Share::READ`] and [`Share::WRITE`].
    pub access: u32,
    /// The same bits for the access that is denied to others.
    pub deny: u32,
}

impl Share {
    /// Read access.
    pub const READ: u32 = 1;
    /// Write access.
    pub const WRITE: u32 = 2;
    /// Read and write access.
    pub const BOTH: u32 = 3;

    /// A name is added to a directory. This bit and the following ones, of [`NoticeWishes::kinds`],
    /// say beside write access how a directory changes: a holder that is notified of all of it
    /// keeps its delegation.
    pub const ADDED: u32 = NoticeWishes::ADDED;
    /// A name is removed from a directory.
    pub const REMOVED: u32 = NoticeWishes::REMOVED;
    /// A name is replaced by another one in the same directory.
    pub const RENAMED: u32 = NoticeWishes::RENAMED;
    /// Attributes of a directory are set.
    pub const ATTRIBUTES: u32 = NoticeWishes::ATTRIBUTES;
    /// The time of the last access is set.
    pub const ACCESSED: u32 = NoticeWishes::ACCESSED;
    /// The time of the last change of the names is set.
    pub const MODIFIED: u32 = NoticeWishes::MODIFIED;

    /// Returns the share of an open that denies nothing.
    #[must_use]
    pub const fn access(access: u32) -> Self {
        Self { access, deny: 0 }
    }

    /// Returns whether RFC 8881 allows this share.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.access != 0 && self.access <= Self::BOTH && self.deny <= Self::BOTH
    }

    /// Returns the union of both shares.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { access: self.access | other.access, deny: self.deny | other.deny }
    }

    /// Returns how a directory changes, if a holder of it may be notified instead of losing the
    /// delegation.
    pub(crate) const fn told(self) -> Option<u32> {
        match self.access & NoticeWishes::KINDS {
            0 => None,
            told => Some(told),
        }
    }

    const fn stands_against(self, other: Self) -> bool {
        self.access & other.deny != 0 || self.deny & other.access != 0
    }
}

/// The opens of a file, and the number of opens with each mode.
#[derive(Default)]
pub(crate) struct Shares {
    opens: Holders<Share>,
    access: [u32; 2],
    deny: [u32; 2],
}

impl Shares {
    pub(crate) fn is_empty(&self) -> bool {
        self.opens.is_empty()
    }

    /// Sets the share of an open; none ends the open. Returns the previous share.
    pub(crate) fn set(&mut self, holder: Holder, share: Option<Share>) -> Option<Share> {
        let old = match share {
            Some(share) => self.opens.insert(holder, share),
            None => self.opens.remove(holder),
        };
        self.count(share.unwrap_or_default(), 1);
        self.count(old.unwrap_or_default(), -1);
        old
    }

    /// Returns an open of a client other than these that denies any of `access`.
    pub(crate) fn denied(&self, mine: &[ClientId], access: u32) -> Option<Holder> {
        if self.all().deny & access == 0 {
            return None;
        }
        let mut others = self.opens.iter().filter(|(other, _)| !mine.contains(&other.client));
        others.find(|(_, share)| share.deny & access != 0).map(|(other, _)| other)
    }

    /// Returns an open of another holder that conflicts with this share. If no open denies
    /// anything, the cost is four loads.
    pub(crate) fn conflict(&self, holder: Option<Holder>, share: Share) -> Option<Holder> {
        if !self.all().stands_against(share) {
            return None;
        }
        let mut others = self.opens.iter().filter(|(other, _)| Some(*other) != holder);
        others.find(|(_, other)| other.stands_against(share)).map(|(other, _)| other)
    }

    /// Returns whether a client other than `holder`'s has the file open for any of `access`.
    pub(crate) fn others(&self, holder: Holder, access: u32) -> bool {
        self.all().access & access != 0
            && self
                .opens
                .iter()
                .any(|(other, share)| other.client != holder.client && share.access & access != 0)
    }

    /// Returns the opens of a client.
    pub(crate) fn opens_of(&self, client: ClientId) -> impl Iterator<Item = u32> {
        self.opens.all_of(client)
    }

    /// Returns whether any client has the file open for writing.
    pub(crate) fn is_written(&self) -> bool {
        self.all().access & Share::WRITE != 0
    }

    /// Returns the union of all shares.
    fn all(&self) -> Share {
        let bits = |[read, write]: [u32; 2]| u32::from(read > 0) | u32::from(write > 0) << 1;
        Share { access: bits(self.access), deny: bits(self.deny) }
    }

    fn count(&mut self, share: Share, by: i32) {
        for (counts, bits) in [(&mut self.access, share.access), (&mut self.deny, share.deny)] {
            for (bit, count) in [Share::READ, Share::WRITE].into_iter().zip(counts) {
                if bits & bit != 0 {
                    *count = count.saturating_add_signed(by);
                }
            }
        }
    }
}

pub(crate) const fn share_of(kind: LockType) -> Share {
    Share::access(match kind {
        LockType::Read => Share::READ,
        LockType::Write => Share::WRITE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn holder(client: u64, state: u32) -> Holder {
        Holder { client: ClientId(client), state }
    }

    const fn share(access: u32, deny: u32) -> Share {
        Share { access, deny }
    }

    #[test]
    fn a_share_asks_for_some_access_and_has_no_unknown_bits() {
        for (access, deny) in (0..=4).flat_map(|access| (0..=4).map(move |deny| (access, deny))) {
            let valid = (1..=3).contains(&access) && deny <= 3;
            assert_eq!(share(access, deny).is_valid(), valid, "{access} {deny}");
        }
        let removal = Share::access(Share::WRITE | Share::REMOVED);
        assert_eq!(removal.told(), Some(Share::REMOVED));
        assert_eq!(Share::access(Share::BOTH).told(), None);
    }

    #[test]
    fn an_open_conflicts_if_one_of_the_two_denies_what_the_other_asks_for() {
        for bits in 0..256_u32 {
            let [access, deny, other_access, other_deny] = [0, 2, 4, 6].map(|at| bits >> at & 3);
            let mut shares = Shares::default();
            shares.set(holder(1, 1), Some(share(access, deny)));
            let conflicts = access & other_deny != 0 || deny & other_access != 0;
            let wanted = share(other_access, other_deny);
            let found = shares.conflict(Some(holder(1, 2)), wanted);
            assert_eq!(found, conflicts.then_some(holder(1, 1)), "{bits:#x}");
            assert_eq!(shares.conflict(None, wanted), found, "{bits:#x}");
            assert_eq!(shares.conflict(Some(holder(1, 1)), wanted), None, "it is the same open");
        }
    }

    #[test]
    fn a_client_does_not_deny_its_own_access_and_others_do() {
        let mut shares = Shares::default();
        shares.set(holder(1, 1), Some(share(Share::READ, Share::WRITE)));
        assert_eq!(shares.denied(&[ClientId(2)], Share::WRITE), Some(holder(1, 1)));
        assert_eq!(shares.denied(&[], Share::BOTH), Some(holder(1, 1)));
        assert_eq!(shares.denied(&[], Share::READ), None);
        assert_eq!(shares.denied(&[ClientId(1)], Share::WRITE), None);
        shares.set(holder(2, 1), Some(share(Share::READ, Share::READ)));
        assert_eq!(shares.denied(&[ClientId(1)], Share::WRITE), None);
        assert_eq!(shares.denied(&[ClientId(1)], Share::READ), Some(holder(2, 1)));
    }

    #[test]
    fn only_opens_of_other_clients_for_the_asked_access_count_as_others() {
        let mut shares = Shares::default();
        shares.set(holder(1, 1), Some(share(Share::WRITE, 0)));
        shares.set(holder(2, 1), Some(share(Share::READ, 0)));
        assert!(shares.others(holder(1, 9), Share::READ));
        assert!(!shares.others(holder(1, 9), Share::WRITE));
        assert!(shares.others(holder(2, 9), Share::WRITE));
        assert!(!shares.others(holder(2, 9), Share::READ));
        let mut one = Shares::default();
        one.set(holder(1, 1), Some(share(Share::READ, 0)));
        assert!(one.others(holder(2, 1), Share::READ));
    }

    #[test]
    fn the_union_of_two_shares_has_the_bits_of_both() {
        let (read, both) = (share(Share::READ, Share::WRITE), share(Share::BOTH, Share::BOTH));
        assert_eq!(read.and(share(Share::WRITE, Share::READ)), both);
        assert_eq!(read.and(both), both);
    }

    #[test]
    fn each_mode_counts_until_its_last_open_has_ended_or_was_downgraded() {
        let mut shares = Shares::default();
        assert!(shares.is_empty() && !shares.is_written());
        let both = share(Share::BOTH, Share::READ);
        assert_eq!(shares.set(holder(1, 1), Some(both)), None);
        assert_eq!(shares.set(holder(1, 2), Some(share(Share::WRITE, 0))), None);
        assert_eq!(shares.set(holder(1, 1), Some(share(Share::READ, 0))), Some(both));
        assert!(shares.is_written());
        assert_eq!(shares.conflict(None, share(Share::READ, 0)), None, "nothing is denied now");
        assert_eq!(shares.set(holder(1, 2), None), Some(share(Share::WRITE, 0)));
        assert!(!shares.is_written() && !shares.is_empty());
        assert_eq!(shares.opens_of(ClientId(1)).collect::<Vec<_>>(), [1]);
        assert_eq!(shares.opens_of(ClientId(2)).count(), 0);
        shares.set(holder(1, 1), None);
        assert!(shares.is_empty());
    }
}

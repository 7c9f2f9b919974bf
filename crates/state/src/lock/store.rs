//! The granted locks of a file.

use super::ByteRange;
use super::table::{Conflict, LockType};
use super::tree_index::TreeIndex;
use super::vec::LockVec;

/// Locks of all owners. The locks of one owner never overlap, and are adjacent only if their types
/// differ.
#[derive(Debug, Clone)]
pub(super) enum LockStore {
    /// A list of at most [`FEW`] locks.
    Few(LockVec),
    /// Any number of locks. A set that has become small again stays in the tree.
    Many(Box<TreeIndex>),
}

/// Most locks that are searched linearly.
const FEW: usize = 8;

impl LockStore {
    pub(super) const fn new() -> Self {
        Self::Few(LockVec::new())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.len(),
            Self::Many(many) => many.len(),
        }
    }

    /// Returns a conflicting lock of another owner.
    pub(super) fn conflict(
        &self,
        owner: u64,
        range: ByteRange,
        kind: LockType,
    ) -> Option<Conflict> {
        let find = |kind| {
            let (range, owner) = self.find(kind, range, |holder| holder != owner)?;
            Some(Conflict { owner, range, kind })
        };
        let read = || if kind == LockType::Write { find(LockType::Read) } else { None };
        find(LockType::Write).or_else(read)
    }

    /// Returns whether any owner that `meant` accepts has a lock that conflicts with one of this
    /// kind.
    pub(super) fn stands_against(&self, kind: LockType, meant: impl Fn(u64) -> bool) -> bool {
        let find = |kind| self.find(kind, ByteRange::ALL, &meant).is_some();
        find(LockType::Write) || kind == LockType::Write && find(LockType::Read)
    }

    /// Returns whether `owner` has locked a byte of `range`.
    pub(super) fn holds_any(&self, owner: u64, range: ByteRange) -> bool {
        match self {
            Self::Few(few) => few.holds_any(owner, range),
            Self::Many(many) => many.holds_any(owner, range),
        }
    }

    /// Returns whether one lock of `owner` covers bytes before and after `range`.
    pub(super) fn surrounds(&self, owner: u64, range: ByteRange) -> bool {
        match self {
            Self::Few(few) => few.surrounds(owner, range),
            Self::Many(many) => many.surrounds(owner, range),
        }
    }

    /// Returns the locks of `owner`, in order.
    pub(super) fn of(&self, owner: u64) -> impl Iterator<Item = (ByteRange, LockType)> + '_ {
        let (few, many) = match self {
            Self::Few(few) => (Some(few.of(owner)), None),
            Self::Many(many) => (None, Some(many.of(owner))),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    /// Returns the union of all owners' locks within a range, in order and without gaps.
    pub(super) fn united(&self, range: ByteRange) -> Vec<(ByteRange, Option<LockType>)> {
        let (mut parts, mut left) = (Vec::new(), Some(range));
        while let Some(rest) = left {
            let found = |kind| {
                let (piece, _) = self.find(kind, rest, |_| true)?;
                Some((piece.first.max(rest.first), piece.last.min(rest.last), kind))
            };
            let first = found(LockType::Write).into_iter().chain(found(LockType::Read)).min();
            let Some((first, last, kind)) = first else {
                parts.push((rest, None));
                break;
            };
            let piece = ByteRange { first, last };
            parts.extend(rest.before(piece).map(|gap| (gap, None)));
            parts.push((piece, Some(kind)));
            left = rest.behind(piece);
        }
        parts
    }

    /// Sets the lock of `owner` on `range` to one kind, or frees the range. Its earlier locks there
    /// are split, joined or removed.
    pub(super) fn set(&mut self, owner: u64, range: ByteRange, kind: Option<LockType>) {
        match self {
            Self::Few(few) => {
                few.set(owner, range, kind);
                if few.len() > FEW {
                    *self = Self::Many(Box::new(TreeIndex::from(&*few)));
                }
            }
            Self::Many(many) => {
                many.set(owner, range, kind);
                if many.len() == 0 {
                    *self = Self::new();
                }
            }
        }
    }

    fn find(
        &self,
        kind: LockType,
        range: ByteRange,
        wanted: impl Fn(u64) -> bool,
    ) -> Option<(ByteRange, u64)> {
        match self {
            Self::Few(few) => few.find(kind, range, wanted),
            Self::Many(many) => many.find(kind, range, wanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNERS: u64 = 3;
    const BYTES: u64 = 24;

    fn kind() -> impl Strategy<Value = Option<LockType>> {
        // Locks and unlocks are equally likely, so that some runs have few locks and some have
        // many.
        prop_oneof![Just(None), Just(Some(LockType::Read)), Just(Some(LockType::Write))]
    }

    proptest! {
        #[test]
        fn few_and_many_locks_are_found_alike(
            steps in proptest::collection::vec((0..OWNERS, 0..BYTES, 0..4_u64, kind()), 1..120),
        ) {
            let (mut held, mut many) = (LockStore::new(), TreeIndex::from(&LockVec::new()));
            for (owner, first, more, kind) in steps {
                let range = ByteRange { first, last: first + more };
                held.set(owner, range, kind);
                many.set(owner, range, kind);
                prop_assert_eq!(held.len(), many.len());
                for owner in 0..OWNERS {
                    prop_assert!(held.of(owner).eq(many.of(owner)));
                    prop_assert_eq!(held.holds_any(owner, range), many.holds_any(owner, range));
                    let surrounds = held.of(owner).any(|(piece, _)| piece.surrounds(range));
                    prop_assert_eq!(held.surrounds(owner, range), surrounds);
                    prop_assert_eq!(many.surrounds(owner, range), surrounds);
                    for kind in [LockType::Read, LockType::Write] {
                        let other = |holder| holder != owner;
                        let found = held.find(kind, range, other);
                        prop_assert_eq!(found, many.find(kind, range, other));
                    }
                }
            }
            (0..OWNERS).for_each(|owner| held.set(owner, ByteRange::ALL, None));
            prop_assert!(held.len() == 0 && matches!(held, LockStore::Few(_)));
        }
    }
}

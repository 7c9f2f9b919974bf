use comity_proto::nfs4::{NfsLockType4, Stateid4};

/// The locks of a file by one lock-owner.
#[derive(Debug, Default)]
pub(super) struct LockState {
    /// The stateid; `None` before the first lock.
    pub(super) stateid: Option<Stateid4>,
    /// The number of the caller's open with which it locked last.
    pub(super) hold: u64,
    /// The locked ranges, which are reclaimed after a restart of the server.
    pub(super) ranges: LockRanges,
}

/// Locked ranges of one owner, in order; adjacent ranges of one kind are joined.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct LockRanges(Vec<LockedRange>);

/// A locked range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LockedRange {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) is_exclusive: bool,
}

impl LockedRange {
    /// Offset and length on the wire; a length of all ones reaches to the end of the file.
    pub(super) const fn on_wire((first, last): (u64, u64)) -> (u64, u64) {
        (first, if last == u64::MAX { u64::MAX } else { last - first + 1 })
    }

    /// First and last byte of a range on the wire.
    pub(super) const fn of_wire(offset: u64, length: u64) -> (u64, u64) {
        let last = if length == u64::MAX {
            u64::MAX
        } else {
            offset.saturating_add(length.saturating_sub(1))
        };
        (offset, last)
    }

    pub(super) const fn lock_type(is_exclusive: bool, waits: bool) -> NfsLockType4 {
        match (is_exclusive, waits) {
            (true, true) => NfsLockType4::WriteWait,
            (true, false) => NfsLockType4::Write,
            (false, true) => NfsLockType4::ReadWait,
            (false, false) => NfsLockType4::Read,
        }
    }
}

impl LockRanges {
    /// Locks a range; `None` unlocks it.
    pub(super) fn set(&mut self, (first, last): (u64, u64), is_exclusive: Option<bool>) {
        let mut kept = Vec::new();
        for range in &self.0 {
            if range.last < first || range.first > last {
                kept.push(*range);
                continue;
            }
            if range.first < first {
                kept.push(LockedRange { last: first - 1, ..*range });
            }
            if range.last > last {
                kept.push(LockedRange { first: last + 1, ..*range });
            }
        }
        kept.extend(is_exclusive.map(|is_exclusive| LockedRange { first, last, is_exclusive }));
        kept.sort_by_key(|range| range.first);
        self.0 = kept;
        self.join();
    }

    /// Joins adjacent ranges of one kind.
    fn join(&mut self) {
        let mut joined: Vec<LockedRange> = Vec::new();
        for range in &self.0 {
            match joined.last_mut() {
                Some(before)
                    if before.is_exclusive == range.is_exclusive
                        && before.last.checked_add(1) == Some(range.first) =>
                {
                    before.last = range.last;
                }
                _ => joined.push(*range),
            }
        }
        self.0 = joined;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = LockedRange> + '_ {
        self.0.iter().copied()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES: u64 = 24;

    proptest! {
        #[test]
        fn ranges_agree_with_a_map_of_bytes(
            steps in proptest::collection::vec((0..BYTES, 0..BYTES, any::<Option<bool>>()), 0..20),
        ) {
            let (mut ranges, mut model) = (LockRanges::default(), [None; BYTES as usize]);
            for (one, other, lock) in steps {
                let (first, last) = (one.min(other), one.max(other));
                ranges.set((first, last), lock);
                model[first as usize..=last as usize].fill(lock);
                let mut found = [None; BYTES as usize];
                for LockedRange { first, last, is_exclusive } in ranges.iter() {
                    found[first as usize..=last as usize].fill(Some(is_exclusive));
                }
                prop_assert_eq!(found, model);
                let touching = ranges.0.windows(2).any(|pair| {
                    let is_same = pair[0].is_exclusive == pair[1].is_exclusive;
                    is_same && pair[0].last + 1 == pair[1].first
                });
                prop_assert!(!touching);
            }
        }
    }

    #[test]
    fn a_length_of_all_ones_reaches_to_the_end_of_the_file() {
        assert_eq!(LockedRange::on_wire((5, u64::MAX)), (5, u64::MAX));
        assert_eq!(LockedRange::on_wire((5, 5)), (5, 1));
        assert_eq!(LockedRange::of_wire(5, u64::MAX), (5, u64::MAX));
        assert_eq!(LockedRange::of_wire(5, 1), (5, 5));
        let mut ranges = LockRanges::default();
        ranges.set((0, u64::MAX), Some(true));
        ranges.set((7, u64::MAX), None);
        assert_eq!(ranges.iter().next().map(|range| range.last), Some(6));
    }
}

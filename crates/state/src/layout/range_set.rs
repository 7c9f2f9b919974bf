use std::ops::Range;

use crate::ByteRange;

/// A set of bytes, as ranges in order. No two of them overlap or adjoin. It takes two words in
/// every state of a client.
#[derive(Debug, Clone, Default)]
pub(super) struct RangeSet(Box<[ByteRange]>);

impl RangeSet {
    /// Returns the number of ranges.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a range, and merges it with those that it overlaps or adjoins.
    pub(super) fn insert(&mut self, range: ByteRange) {
        let touched = self.overlapping(range.widened());
        let old = self.0.get(touched.clone()).unwrap_or_default();
        let merged = old.iter().copied().fold(range, ByteRange::hull);
        self.replace(touched, [merged]);
    }

    /// Removes a range, which may split one range in two.
    pub(super) fn remove(&mut self, range: ByteRange) {
        let touched = self.overlapping(range);
        let old = self.0.get(touched.clone()).unwrap_or_default();
        let kept = old.iter().flat_map(|old| [old.before(range), old.behind(range)]);
        let kept: Vec<ByteRange> = kept.flatten().collect();
        self.replace(touched, kept);
    }

    fn replace(&mut self, old: Range<usize>, new: impl IntoIterator<Item = ByteRange>) {
        let mut ranges = std::mem::take(&mut self.0).into_vec();
        ranges.splice(old, new);
        self.0 = ranges.into_boxed_slice();
    }

    /// Returns whether it has every byte of a range.
    pub(super) fn contains(&self, range: ByteRange) -> bool {
        let touched = self.overlapping(range);
        self.0.get(touched).unwrap_or_default().iter().any(|one| one.contains(range))
    }

    fn overlapping(&self, range: ByteRange) -> Range<usize> {
        let first = self.0.partition_point(|one| one.last < range.first);
        first..self.0.partition_point(|one| one.first <= range.last)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const HIGHEST: u64 = 24;

    fn range(first: u64, last: u64) -> ByteRange {
        ByteRange { first: first.min(last), last: first.max(last) }
    }

    /// Returns the fewest ranges that have these bytes.
    fn ranges(bytes: &BTreeSet<u64>) -> Vec<ByteRange> {
        let starts = bytes.iter().filter(|&&byte| byte == 0 || !bytes.contains(&(byte - 1)));
        let end = |first: u64| (first..).find(|byte| !bytes.contains(&(byte + 1))).unwrap();
        starts.map(|&first| ByteRange { first, last: end(first) }).collect()
    }

    #[test]
    fn ranges_to_the_end_of_the_file_are_merged_and_split() {
        let mut set = RangeSet::default();
        set.insert(ByteRange::ALL);
        set.insert(range(u64::MAX, u64::MAX));
        assert_eq!(*set.0, [ByteRange::ALL]);
        set.remove(range(10, 19));
        assert_eq!(*set.0, [range(0, 9), range(20, u64::MAX)]);
        set.remove(ByteRange::ALL);
        assert_eq!(*set.0, []);
    }

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set_of_bytes(
            steps in proptest::collection::vec((any::<bool>(), 0..HIGHEST, 0..HIGHEST), 1..40),
            asked in (0..HIGHEST, 0..HIGHEST),
        ) {
            let (mut set, mut bytes) = (RangeSet::default(), BTreeSet::new());
            for (adds, first, last) in steps {
                let range = range(first, last);
                let each = range.first..=range.last;
                if adds {
                    set.insert(range);
                    bytes.extend(each);
                } else {
                    set.remove(range);
                    bytes.retain(|byte| !each.contains(byte));
                }
                prop_assert_eq!(&*set.0, &*ranges(&bytes));
            }
            let asked = range(asked.0, asked.1);
            let has_all = (asked.first..=asked.last).all(|byte| bytes.contains(&byte));
            prop_assert_eq!(set.contains(asked), has_all);
        }
    }
}

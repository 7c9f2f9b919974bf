//! Maps ranges of numbers to values: the first range that covers a number decides.
//!
//! **Answers:** the value of the first range that covers a number. The time does not grow with the
//! count of ranges if they are spread evenly, and grows as its logarithm at worst.
//!
//! **May not know:** the meaning of the numbers and values.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod lookup_cache;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use lookup_cache::{LookupCache, SharedCache};

/// The numbers from `first` to `last`, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    /// The lowest number.
    pub first: u32,
    /// The highest number, not below the lowest.
    pub last: u32,
}

impl Range {
    /// Returns the range of a single number.
    #[must_use]
    pub const fn single(number: u32) -> Self {
        Self { first: number, last: number }
    }

    /// Returns whether `number` lies in it.
    #[must_use]
    pub const fn covers(self, number: u32) -> bool {
        self.first <= number && number <= self.last
    }

    /// Returns the count of its numbers: 1 to 2^32.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.last as u64 - self.first as u64 + 1
    }

    /// Returns the numbers that lie in both ranges.
    #[must_use]
    pub fn common(self, other: Self) -> Option<Self> {
        let common = Self { first: self.first.max(other.first), last: self.last.min(other.last) };
        (common.first <= common.last).then_some(common)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// Collects ranges; earlier ones win over later ones.
#[derive(Debug, Clone)]
pub struct Builder<T> {
    /// The parts by their first number; they are disjoint.
    parts: BTreeMap<u32, (u32, T)>,
    /// The covered ranges, by first and last number, joined where they touch, so that a range that
    /// covers many others is not searched again for each later one.
    covered: BTreeMap<u32, u32>,
}

impl<T: Copy> Builder<T> {
    /// Makes a builder without ranges.
    #[must_use]
    pub const fn new() -> Self {
        Self { parts: BTreeMap::new(), covered: BTreeMap::new() }
    }

    /// Adds a range with lower precedence than all others; returns the parts of it that none of
    /// them covers, in order. If there are none, the range has no effect.
    pub fn add(&mut self, range: Range, value: T) -> Vec<Range> {
        let free = self.left(range);
        for part in &free {
            self.parts.insert(part.first, (part.last, value));
        }
        self.cover(range);
        free
    }

    fn cover(&mut self, range: Range) {
        let (mut first, mut last) = (range.first, range.last);
        let touches = |last: u32| last.saturating_add(1) >= range.first;
        let before = self.covered.range(..=range.first).next_back();
        if let Some((&begin, &end)) = before.filter(|(_, end)| touches(**end)) {
            (first, last) = (begin, last.max(end));
        }
        while let Some((&begin, &end)) = self.covered.range(first..=last.saturating_add(1)).next() {
            self.covered.remove(&begin);
            last = last.max(end);
        }
        self.covered.insert(first, last);
    }

    /// Returns the parts of earlier ranges within `range`, in order.
    pub fn within(&self, range: Range) -> impl Iterator<Item = (Range, T)> + '_ {
        let from = self.parts.range(..=range.first).next_back().map_or(range.first, |(&f, _)| f);
        self.parts.range(from..=range.last).filter_map(move |(&first, &(last, value))| {
            Range { first, last }.common(range).map(|common| (common, value))
        })
    }

    /// Makes the table for look-ups.
    #[must_use]
    pub fn build(self) -> Ranges<T> {
        let part = |(first, (last, value))| Part { range: Range { first, last }, value };
        Ranges::new(self.parts.into_iter().map(part).collect())
    }

    /// Returns the parts of `range` that no range covers yet, in order.
    #[must_use]
    pub fn left(&self, range: Range) -> Vec<Range> {
        let (mut free, mut next) = (Vec::new(), Some(range.first));
        let before = self.covered.range(..=range.first).next_back();
        let from = before.map_or(range.first, |(&first, _)| first);
        let blocks = self.covered.range(from..=range.last);
        let blocks = blocks.map(|(&first, &last)| Range { first, last });
        for taken in blocks.filter_map(|block| block.common(range)) {
            if let Some(first) = next
                && first < taken.first
            {
                free.push(Range { first, last: taken.first - 1 });
            }
            next = taken.last.checked_add(1);
        }
        free.extend(
            next.filter(|&first| first <= range.last)
                .map(|first| Range { first, last: range.last }),
        );
        free
    }
}

impl<T: Copy> Default for Builder<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part<T> {
    range: Range,
    value: T,
}

/// Disjoint ranges in order, with an index that finds the approximate position at once. Cheap to
/// clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges<T> {
    parts: Arc<[Part<T>]>,
    /// For each stretch of `1 << shift` numbers from `base` on, the first part that ends in or
    /// after it. It has one entry more than there are stretches.
    index: Arc<[u32]>,
    base: u32,
    shift: u32,
}

impl<T: Copy> Ranges<T> {
    fn new(parts: Arc<[Part<T>]>) -> Self {
        let (base, last) = match (parts.first(), parts.last()) {
            (Some(lowest), Some(highest)) => (lowest.range.first, highest.range.last),
            _ => (0, 0),
        };
        let stretches = (parts.len() as u32).next_power_of_two();
        let shift = (u32::BITS - (last - base).leading_zeros())
            .saturating_sub(stretches.trailing_zeros())
            .min(u32::BITS - 1);
        let count = ((last - base) >> shift) + 1;
        let place = |stretch: u32| {
            let from = u64::from(base) + (u64::from(stretch) << shift);
            parts.partition_point(|part| u64::from(part.range.last) < from) as u32
        };
        let index = (0..=count).map(place).collect();
        Self { parts, index, base, shift }
    }

    /// Returns the part that covers a number, and its value.
    #[must_use]
    #[inline]
    pub fn find(&self, number: u32) -> Option<(Range, T)> {
        self.part(number).map(|part| (part.range, part.value))
    }

    /// Returns the value of the range that covers a number.
    #[must_use]
    #[inline]
    pub fn value(&self, number: u32) -> Option<&T> {
        self.part(number).map(|part| &part.value)
    }

    #[inline]
    fn part(&self, number: u32) -> Option<&Part<T>> {
        let stretch = (number.checked_sub(self.base)? >> self.shift) as usize;
        let &[from, to] = self.index.get(stretch..stretch + 2)? else { return None };
        let first = self.parts.get(from as usize)?;
        // A part that ends after the stretch may still begin in it, so one more is searched.
        let part = match to - from {
            _ if first.range.last >= number => first,
            0 => return None,
            1 => self.parts.get(from as usize + 1)?,
            more => self.search(from as usize, more as usize, number)?,
        };
        part.range.covers(number).then_some(part)
    }

    /// Searches the part at `from` and the `more` parts after it; returns the first whose last
    /// number is at least `number`.
    fn search(&self, from: usize, more: usize, number: u32) -> Option<&Part<T>> {
        let parts = self.parts.get(from..)?;
        let near = parts.get(..=more).unwrap_or(parts);
        near.get(near.partition_point(|part| part.range.last < number))
    }

    /// Returns all ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = (Range, T)> + '_ {
        self.parts.iter().map(|part| (part.range, part.value))
    }

    /// Returns whether there are no ranges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges() -> impl Strategy<Value = Vec<Range>> {
        let number = prop_oneof![0..40_u32, 990..1010_u32, u32::MAX - 20..=u32::MAX, any::<u32>()];
        let range =
            (number.clone(), number).prop_map(|(a, b)| Range { first: a.min(b), last: a.max(b) });
        proptest::collection::vec(range, 0..20)
    }

    fn table(ranges: &[Range]) -> Ranges<usize> {
        let mut builder = Builder::new();
        for (value, &range) in ranges.iter().enumerate() {
            builder.add(range, value);
        }
        builder.build()
    }

    proptest! {
        #[test]
        fn the_first_range_that_covers_a_number_wins(
            ranges in ranges(),
            other in proptest::collection::vec(any::<u32>(), 8),
        ) {
            let table = table(&ranges);
            let edges = ranges.iter().flat_map(|r| {
                [r.first, r.last, r.first.wrapping_sub(1), r.last.wrapping_add(1)]
            });
            for number in edges.chain(other).chain([0, u32::MAX]) {
                let expected = ranges.iter().position(|range| range.covers(number));
                prop_assert_eq!(table.find(number).map(|(_, value)| value), expected);
                prop_assert_eq!(table.value(number).copied(), expected);
            }
        }

        #[test]
        fn the_result_of_add_is_the_decision_of_the_range(ranges in ranges()) {
            let mut builder = Builder::new();
            for (value, &range) in ranges.iter().enumerate() {
                let free: u64 = builder.add(range, value).into_iter().map(Range::count).sum();
                let decided = builder.within(range).filter(|&(_, v)| v == value);
                prop_assert_eq!(free, decided.map(|(part, _)| part.count()).sum::<u64>());
            }
        }
    }

    #[test]
    fn a_range_has_both_its_ends() {
        let range = Range { first: 5, last: 9 };
        let covered: Vec<u32> = (0..20).filter(|&number| range.covers(number)).collect();
        assert_eq!(covered, [5, 6, 7, 8, 9]);
        assert_eq!(range.count(), 5);
        assert_eq!(Range::single(7).count(), 1);
        assert_eq!(Range { first: 0, last: u32::MAX }.count(), 1 << 32);
        assert_eq!((range.to_string(), Range::single(7).to_string()), ("5-9".into(), "7".into()));
    }

    #[test]
    fn ranges_have_in_common_what_lies_in_both() {
        let common = |(a, b), (c, d)| {
            let other = Range { first: c, last: d };
            let common = Range { first: a, last: b }.common(other);
            common.map(|range| (range.first, range.last))
        };
        assert_eq!(common((5, 9), (7, 20)), Some((7, 9)));
        assert_eq!(common((5, 9), (9, 20)), Some((9, 9)), "one number is enough");
        assert_eq!(common((5, 9), (0, u32::MAX)), Some((5, 9)));
        assert_eq!(common((5, 9), (10, 20)), None);
    }

    #[test]
    fn parts_that_are_left_are_told_in_order_up_to_the_last_number() {
        let mut builder = Builder::default();
        let range = |first, last| Range { first, last };
        assert_eq!(builder.add(range(10, 19), 'a'), [range(10, 19)]);
        assert_eq!(builder.add(range(15, 29), 'b'), [range(20, 29)]);
        assert_eq!(builder.add(range(40, 49), 'c'), [range(40, 49)]);
        assert_eq!(builder.left(range(0, 60)), [range(0, 9), range(30, 39), range(50, 60)]);
        assert_eq!(builder.left(range(12, 45)), [range(30, 39)]);
        assert_eq!(builder.left(range(30, 30)), [range(30, 30)]);
        assert_eq!(builder.left(range(12, 29)), [], "two that touch leave nothing");
        let (whole, all) = (range(0, u32::MAX), range(50, u32::MAX));
        assert_eq!(builder.add(whole, 'd'), [range(0, 9), range(30, 39), all]);
        assert_eq!(builder.left(whole), []);
        let within: Vec<_> = builder.within(range(18, 31)).collect();
        let expected = [(range(18, 19), 'a'), (range(20, 29), 'b'), (range(30, 31), 'd')];
        assert_eq!(within, expected);
    }

    #[test]
    fn a_table_lists_its_ranges_in_order() {
        let range = |first, last| Range { first, last };
        let built = table(&[range(30, 39), range(10, 19)]);
        assert_eq!(built.iter().collect::<Vec<_>>(), [(range(10, 19), 1), (range(30, 39), 0)]);
        assert!(!built.is_empty());
        let empty = table(&[]);
        assert!(empty.is_empty() && empty.iter().next().is_none());
        assert_eq!((empty.find(0), empty.find(u32::MAX)), (None, None));
    }

    #[test]
    fn a_hundred_thousand_ranges_are_found_each() {
        let ranges: Vec<_> =
            (0..100_000_u32).map(|at| Range { first: at * 30, last: at * 30 + 9 }).collect();
        let table = table(&ranges);
        for (at, range) in ranges.iter().enumerate() {
            assert_eq!(table.find(range.last), Some((*range, at)));
            assert_eq!(table.find(range.last + 1), None);
        }
    }
}

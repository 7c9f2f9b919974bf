use std::fmt;

/// The bytes from `first` to `last`, both included. A range that reaches to the end of the file,
/// even if the file grows, ends at [`u64::MAX`] (RFC 8881, 18.10.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteRange {
    /// The first byte.
    pub first: u64,
    /// The last byte, not before the first.
    pub last: u64,
}

impl ByteRange {
    /// The whole file.
    pub const ALL: Self = Self { first: 0, last: u64::MAX };

    /// Returns the range of `length` bytes at `offset`, as in LOCK. A length of all ones reaches to
    /// the end of the file. A length of zero, or a range that ends beyond the highest offset, is
    /// invalid.
    #[must_use]
    pub const fn new(offset: u64, length: u64) -> Option<Self> {
        match length {
            0 => None,
            u64::MAX => Some(Self { first: offset, last: u64::MAX }),
            _ => match offset.checked_add(length - 1) {
                Some(last) => Some(Self { first: offset, last }),
                None => None,
            },
        }
    }

    /// Returns whether the ranges have a byte in common.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Returns whether it contains every byte of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// Returns whether it has bytes before `other` and bytes after it.
    #[must_use]
    pub const fn surrounds(self, other: Self) -> bool {
        self.first < other.first && other.last < self.last
    }

    /// Returns its part before `other`.
    #[must_use]
    pub fn before(self, other: Self) -> Option<Self> {
        (self.first < other.first)
            .then(|| Self { first: self.first, last: self.last.min(other.first - 1) })
    }

    /// Returns its part after `other`.
    #[must_use]
    pub fn behind(self, other: Self) -> Option<Self> {
        (other.last < self.last)
            .then(|| Self { first: self.first.max(other.last + 1), last: self.last })
    }

    /// Returns the smallest range that contains both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Returns the range extended by one byte at each end, where there is one.
    #[must_use]
    pub const fn widened(self) -> Self {
        Self { first: self.first.saturating_sub(1), last: self.last.saturating_add(1) }
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            u64::MAX => write!(f, "{}..", self.first),
            last => write!(f, "{}..={last}", self.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(first: u64, last: u64) -> ByteRange {
        ByteRange { first, last }
    }

    #[test]
    fn a_range_contains_those_that_end_where_it_does_and_none_that_stand_out() {
        let middle = range(10, 20);
        for inside in [middle, range(10, 10), range(20, 20), range(11, 19), range(10, 19)] {
            assert!(middle.contains(inside), "{inside}");
        }
        for outside in [range(9, 20), range(10, 21), range(9, 21), range(0, 5), range(30, 40)] {
            assert!(!middle.contains(outside), "{outside}");
        }
        assert!(ByteRange::ALL.contains(middle) && !middle.contains(ByteRange::ALL));
    }

    #[test]
    fn a_range_surrounds_those_with_bytes_of_it_on_both_sides() {
        let middle = range(10, 20);
        assert!(middle.surrounds(range(11, 19)) && middle.surrounds(range(15, 15)));
        for other in [middle, range(10, 19), range(11, 20), range(9, 19), range(11, 21)] {
            assert!(!middle.surrounds(other), "{other}");
        }
    }

    #[test]
    fn ranges_that_share_one_byte_overlap() {
        let middle = range(10, 20);
        for other in [range(0, 10), range(20, 30), range(15, 15), ByteRange::ALL] {
            assert!(middle.overlaps(other) && other.overlaps(middle), "{other}");
        }
        for other in [range(0, 9), range(21, 30)] {
            assert!(!middle.overlaps(other) && !other.overlaps(middle), "{other}");
        }
    }

    #[test]
    fn a_range_is_cut_into_the_parts_beside_another() {
        let middle = range(10, 20);
        let parts = |other| (middle.before(other), middle.behind(other));
        assert_eq!(parts(range(12, 15)), (Some(range(10, 11)), Some(range(16, 20))));
        assert_eq!(parts(middle), (None, None));
        assert_eq!(parts(ByteRange::ALL), (None, None));
        assert_eq!(parts(range(30, 40)), (Some(middle), None));
        assert_eq!(parts(range(0, 5)), (None, Some(middle)));
        assert_eq!(parts(range(11, u64::MAX)), (Some(range(10, 10)), None));
        assert_eq!(parts(range(0, 19)), (None, Some(range(20, 20))));
    }

    #[test]
    fn a_range_is_joined_and_widened_within_the_offsets_there_are() {
        assert_eq!(range(10, 20).hull(range(15, 30)), range(10, 30));
        assert_eq!(range(15, 30).hull(range(10, 20)), range(10, 30));
        assert_eq!(range(10, 20).widened(), range(9, 21));
        assert_eq!(ByteRange::ALL.widened(), ByteRange::ALL);
    }

    #[test]
    fn a_length_of_all_ones_reaches_to_the_end_and_none_beyond_it() {
        assert_eq!(ByteRange::new(5, 1), Some(range(5, 5)));
        assert_eq!(ByteRange::new(5, 10), Some(range(5, 14)));
        assert_eq!(ByteRange::new(5, u64::MAX), Some(range(5, u64::MAX)));
        assert_eq!(ByteRange::new(1, u64::MAX - 1), Some(range(1, u64::MAX - 1)));
        assert_eq!(ByteRange::new(2, u64::MAX - 1), Some(range(2, u64::MAX)));
        assert_eq!(ByteRange::new(3, u64::MAX - 1), None);
        assert_eq!(ByteRange::new(5, 0), None);
        assert_eq!(range(5, 9).to_string(), "5..=9");
        assert_eq!(range(5, u64::MAX).to_string(), "5..");
    }
}

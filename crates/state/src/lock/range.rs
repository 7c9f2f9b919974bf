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

    /// Returns whether it has bytes before `other` and bytes behind it.
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

    /// Returns its part behind `other`.
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

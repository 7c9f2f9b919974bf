use std::fmt;

/// Bytes from `first` to `last`, both among them. A range to the end of the file, however far that
/// may move, ends at [`u64::MAX`] (RFC 8881, 18.10.3).
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

    /// The range of `length` bytes at `offset` as LOCK gives it: a length of all ones reaches to
    /// the end of the file; none at all, or one that ends beyond it, is no range.
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

    /// Returns whether a byte lies in both.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Returns whether every byte of `other` lies in it.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// Returns whether bytes of it lie before `other`, and bytes behind.
    #[must_use]
    pub const fn surrounds(self, other: Self) -> bool {
        self.first < other.first && other.last < self.last
    }

    /// The part of it before `other`.
    #[must_use]
    pub fn before(self, other: Self) -> Option<Self> {
        (self.first < other.first)
            .then(|| Self { first: self.first, last: self.last.min(other.first - 1) })
    }

    /// The part of it behind `other`.
    #[must_use]
    pub fn behind(self, other: Self) -> Option<Self> {
        (other.last < self.last)
            .then(|| Self { first: self.first.max(other.last + 1), last: self.last })
    }

    /// Returns the range from the first byte of both to the last.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Returns the range with the byte before and the byte behind it, if there are any.
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

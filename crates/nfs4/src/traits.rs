/// The properties of an operation that are checked before it is begun, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits(u32);

impl Traits {
    /// Nothing.
    pub(crate) const NONE: Self = Self(0);
    /// There must be a current file handle.
    pub(crate) const NEEDS_HANDLE: Self = Self(1);
    /// It changes something that only its result tells: it is not begun if that may not fit.
    pub(crate) const TELLS: Self = Self(8);
    /// It changes an object, and is refused above the exports; it is not begun either if its result
    /// may not fit.
    pub(crate) const CHANGES: Self = Self(2).and(Self::TELLS);
    /// From 4.1 on it may be the first operation, and then must be the only one (RFC 8881, 2.10.2).
    pub(crate) const SESSIONLESS: Self = Self(4);

    /// Both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether all of `other` hold.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A set of an operation's properties, which are checked before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits(u32);

impl Traits {
    /// The empty set.
    pub(crate) const NONE: Self = Self(0);
    /// It needs a current filehandle.
    pub(crate) const NEEDS_HANDLE: Self = Self(1);
    /// It changes something, and the client must receive the result. It does not begin unless the
    /// result surely fits into the reply.
    pub(crate) const TELLS: Self = Self(8);
    /// It changes an object, and is refused above the exports. The rule of `TELLS` applies, too.
    pub(crate) const CHANGES: Self = Self(2).and(Self::TELLS);
    /// From 4.1 on it may be the first operation, and must then be the only one (RFC 8881, 2.10.2).
    pub(crate) const SESSIONLESS: Self = Self(4);

    /// Returns the union of both sets.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the set contains `other`.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

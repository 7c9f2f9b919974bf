use std::ops::{BitAnd, BitOr};

/// A set of rights to an object. The bits are those of ACCESS (RFC 1813, 3.3.4;
/// RFC 8881, 18.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Access(u32);

impl Access {
    /// The empty set of rights.
    pub const NONE: Self = Self(0);
    /// Read a file's data, or list a directory.
    pub const READ: Self = Self(0x01);
    /// Look up a name in a directory.
    pub const LOOKUP: Self = Self(0x02);
    /// Rewrite a file's data, or change entries of a directory.
    pub const MODIFY: Self = Self(0x04);
    /// Add to a file's data, or add entries to a directory.
    pub const EXTEND: Self = Self(0x08);
    /// Delete an entry of a directory.
    pub const DELETE: Self = Self(0x10);
    /// Execute a file.
    pub const EXECUTE: Self = Self(0x20);
    /// All rights.
    pub const ALL: Self = Self(0x3f);

    /// The known bits among `bits`.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The bits as they go over the wire.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether every right of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether the sets share a right.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Access {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Some of the mirrors of a file, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MirrorSet(u8);

impl MirrorSet {
    pub(crate) const NONE: Self = Self(0);

    /// Makes a set of one mirror.
    pub(crate) const fn of(mirror: usize) -> Self {
        Self(1 << (mirror & 7))
    }

    pub(crate) const fn of_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The set as bits, of which the lowest one stands for the first mirror.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn has(self, mirror: usize) -> bool {
        self.0 & Self::of(mirror).0 != 0
    }

    pub(crate) const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// The mirrors that are in both sets.
    pub(crate) const fn common(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the set has mirrors of a file with `count` of them, and not all of those.
    pub(crate) const fn is_part_of(self, count: usize) -> bool {
        self.0 as usize + 1 < 1 << count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_mirrors_that_were_added() {
        let set = MirrorSet::of(0).and(MirrorSet::of(2));
        assert_eq!([0, 1, 2, 3].map(|mirror| set.has(mirror)), [true, false, true, false]);
        assert_eq!(set.common(MirrorSet::of(2).and(MirrorSet::of(3))), MirrorSet::of(2));
        assert!(MirrorSet::NONE.is_empty() && !set.is_empty());
    }

    #[test]
    fn a_part_lacks_at_least_one_mirror() {
        let all = MirrorSet::of(0).and(MirrorSet::of(1));
        assert!(all.is_part_of(3) && !all.is_part_of(2) && !all.is_part_of(1));
        assert!(MirrorSet::NONE.is_part_of(1) && !MirrorSet::of(3).is_part_of(2));
    }
}

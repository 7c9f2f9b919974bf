use comity_vfs::SplitMix64;

/// A random number generator that gives the same choices for the same seed.
pub(crate) struct Rng(SplitMix64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

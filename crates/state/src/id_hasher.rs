//! Hashing of numbers that the engine gave out. Nobody can choose them so that they collide.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds hashers for maps whose keys are numbers of the engine. Keys that peers or file systems
/// choose must not be hashed so.
pub(crate) type BuildIdHasher = BuildHasherDefault<IdHasher>;

/// An odd number with irregular bits: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_ne_bytes(*word)));
        rest.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        let wide = u128::from(self.0 ^ number ^ SPREAD >> 1) * u128::from(SPREAD);
        self.0 = wide as u64 ^ (wide >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn numbers_in_a_row_and_addresses_are_spread() {
        let hash = |number: u64| BuildIdHasher::default().hash_one(number);
        for step in [1, 64, 1 << 32] {
            // A map of 128 buckets uses the lowest bits for the bucket and the highest bits for the
            // tag.
            let places: HashSet<u64> = (0..128).map(|number| hash(number * step) % 128).collect();
            let tags: HashSet<u64> = (0..128).map(|number| hash(number * step) >> 57).collect();
            assert!(places.len() > 64 && tags.len() > 64, "{step}: {places:?} {tags:?}");
        }
    }
}

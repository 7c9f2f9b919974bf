/// A generator of pseudorandom numbers that gives the same ones for the same seed (SplitMix64;
/// Steele, Lea, Flood 2014). It is for faults and tests that can be repeated, not for secrets.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    /// The generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the number at an index of the sequence of a seed, counted from 1. Threads that share
    /// a sequence use different indexes.
    #[must_use]
    pub const fn at(seed: u64, place: u64) -> u64 {
        let word = seed.wrapping_add(place.wrapping_mul(STEP));
        let mixed = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns the next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        let bits = Self::at(self.0, 1);
        self.0 = self.0.wrapping_add(STEP);
        bits
    }

    /// Returns a number from 0 to `end` - 1; 0 if `end` is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        match self.bits().checked_rem(end) {
            Some(number) => number,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_published_ones() {
        // The first numbers for seed 1234567, as in Vigna's reference and Java's SplittableRandom.
        let published = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        let mut numbers = SplitMix64::new(1_234_567);
        assert_eq!([numbers.bits(), numbers.bits()], published);
        assert_eq!([1, 2].map(|place| SplitMix64::at(1_234_567, place)), published);
    }

    #[test]
    fn numbers_are_below_their_end() {
        let mut numbers = SplitMix64::new(7);
        assert!((0..1000).all(|_| numbers.below(3) < 3));
        assert_eq!((numbers.below(1), numbers.below(0)), (0, 0));
    }
}

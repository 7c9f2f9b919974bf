//! Random numbers that can be repeated: the same seed gives the same numbers on every machine.
//!
//! The generator is xoshiro256++ (Blackman and Vigna 2019), seeded by splitmix64: small, fast, and
//! without a weakness that matters for choosing files and offsets.

use std::f64::consts::TAU;

use comity_vfs::SplitMix64;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Rng {
    generator: Xoshiro256PlusPlus,
}

impl Rng {
    /// The stream of random numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// A separate stream for a part of the work, so that the parts may run in any order.
    #[must_use]
    pub fn branch(seed: u64, part: u64) -> Self {
        Self::new(mix(seed) ^ mix(part.wrapping_add(1)))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number from 0 to `bound` - 1, uniform but for one part in 2^64 (Lemire 2019); 0 if `bound`
    /// is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 to 1, 1 excluded.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A number of the normal distribution with mean 0 and deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (TAU * self.unit()).cos()
    }

    /// Puts a list in random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Maps a number to a scrambled one, one to one.
#[must_use]
pub fn mix(number: u64) -> u64 {
    SplitMix64::at(number.wrapping_mul(0x2545_f491_4f6c_dd1d), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        // Results keep their seed, so that a run can be repeated with a later version.
        let mut rng = Rng::new(1);
        let drawn = [rng.bits(), rng.bits(), rng.bits()];
        let wanted =
            [14_971_601_782_005_023_387, 13_781_649_495_232_077_965, 1_847_458_086_238_483_744];
        assert_eq!(drawn, wanted);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
        let take = |seed| {
            let mut rng = Rng::new(seed);
            (0..100).map(|_| rng.bits()).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut rng = Rng::new(3);
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[rng.below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_deviation_one() {
        let mut rng = Rng::new(5);
        let drawn: Vec<f64> = (0..100_000).map(|_| rng.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let square = drawn.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.03, "{mean} {square}");
    }

    #[test]
    fn shuffling_keeps_every_item_and_moves_some() {
        let mut list: Vec<u32> = (0..100).collect();
        Rng::new(1).shuffle(&mut list);
        assert_ne!(list, (0..100).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..100).collect::<Vec<_>>());
    }
}

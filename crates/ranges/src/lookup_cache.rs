use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The word that represents a missing answer, and an empty entry of the cache.
const NONE: u32 = u32::MAX;

/// Number of cached pairs of answers, 64 KiB: a listing of a thousand owners finds nearly all of
/// them again, wherever their numbers lie.
const PAIRS: usize = 4096;

/// The answers for two numbers with the same hash: the newer one first.
type Pair = [AtomicU64; 2];

/// A cache of recent look-ups. It takes no memory before it is first used. Cheap to clone.
#[derive(Clone, Default)]
pub struct LookupCache(Arc<OnceLock<SharedCache>>);

/// The cache without the check that its memory exists, for a caller with many look-ups. All threads
/// share it: a number and its answer are one word, so that they always match. Cheap to clone.
#[derive(Clone)]
pub struct SharedCache(Arc<[Pair; PAIRS]>);

impl LookupCache {
    /// Returns the cache, if it is allocated.
    #[inline]
    #[must_use]
    pub fn allocated(&self) -> Option<&SharedCache> {
        self.0.get()
    }

    /// Returns the cache, and allocates it at the first call.
    #[inline]
    #[must_use]
    pub fn kept(&self) -> &SharedCache {
        self.0.get_or_init(SharedCache::empty)
    }
}

impl SharedCache {
    #[cold]
    fn empty() -> Self {
        Self(Arc::new([const { [const { AtomicU64::new(word(NONE, NONE)) }; 2] }; PAIRS]))
    }

    /// Returns the answer of `find` for a number, from the cache if possible. `find` must always
    /// give the same answer for a number, and never `u32::MAX`.
    #[inline(always)]
    pub fn get_or(&self, number: u32, find: impl FnOnce() -> Option<u32>) -> Option<u32> {
        // Fibonacci hashing, because similar numbers are adjacent or at even distances.
        let at = (number.wrapping_mul(0x9e37_79b9) >> (u32::BITS - PAIRS.ilog2())) as usize;
        let Some(pair) = self.0.get(at) else { return find() };
        let [newer, _] = pair;
        let known = newer.load(Ordering::Relaxed);
        let is_known = (known >> 32) as u32 == number;
        let answer = if is_known { known as u32 } else { older_or(pair, number, find) };
        (answer != NONE).then_some(answer)
    }
}

#[inline(never)]
fn older_or([newer, older]: &Pair, number: u32, find: impl FnOnce() -> Option<u32>) -> u32 {
    let known = older.load(Ordering::Relaxed);
    if (known >> 32) as u32 == number {
        return known as u32;
    }
    let answer = find().unwrap_or(NONE);
    older.store(newer.load(Ordering::Relaxed), Ordering::Relaxed);
    newer.store(word(number, answer), Ordering::Relaxed);
    answer
}

const fn word(number: u32, answer: u32) -> u64 {
    (number as u64) << 32 | answer as u64
}

/// Makes all caches of a type equal, because a cache changes no answer. Debug shows the name only.
macro_rules! equal_and_opaque {
    ($name:ident) => {
        impl PartialEq for $name {
            fn eq(&self, _: &Self) -> bool {
                true
            }
        }

        impl Eq for $name {}

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

equal_and_opaque!(LookupCache);
equal_and_opaque!(SharedCache);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_kept_value_is_the_one_that_would_be_found(
            ids in proptest::collection::vec(prop_oneof![0..9_000_u32, any::<u32>()], 1..5_000),
        ) {
            let find = |id: u32| (!id.is_multiple_of(3)).then_some(id / 2);
            let recent = LookupCache::default();
            let kept = recent.kept();
            for id in ids {
                let expected = if id == NONE { None } else { find(id) };
                prop_assert_eq!(kept.get_or(id, || find(id)), expected);
            }
        }
    }

    #[test]
    fn two_numbers_of_one_place_are_both_kept_and_a_third_replaces_the_older() {
        let pair: Pair = [const { AtomicU64::new(word(NONE, NONE)) }; 2];
        let asked = std::cell::Cell::new(0);
        let ask = |number: u32| {
            let find = || {
                asked.set(asked.get() + 1);
                Some(number * 10)
            };
            // The newer one is looked at before.
            let newer = pair[0].load(Ordering::Relaxed);
            if (newer >> 32) as u32 == number {
                newer as u32
            } else {
                older_or(&pair, number, find)
            }
        };
        let answers =
            |numbers: &[u32]| numbers.iter().map(|&number| ask(number)).collect::<Vec<_>>();
        assert_eq!(answers(&[1, 2, 1, 2]), [10, 20, 10, 20]);
        assert_eq!(asked.get(), 2);
        assert_eq!(answers(&[3, 2, 3]), [30, 20, 30]);
        assert_eq!(asked.get(), 3, "the two last ones are kept");
        assert_eq!(ask(1), 10);
        assert_eq!(asked.get(), 4);
    }

    #[test]
    fn caches_make_no_difference_between_two_tables() {
        let (used, empty) = (LookupCache::default(), LookupCache::default());
        used.kept().get_or(7, || Some(9));
        assert_eq!(used, empty);
        assert_eq!(used.kept(), empty.kept());
        let shown = format!("{used:?} {:?}", used.kept());
        assert_eq!(shown, "LookupCache SharedCache");
    }

    #[test]
    fn an_answer_is_looked_for_once() {
        let recent = LookupCache::default();
        let kept = recent.kept();
        assert_eq!(kept.get_or(7, || Some(9)), Some(9));
        assert_eq!(kept.get_or(7, || panic!("asked again")), Some(9));
        assert_eq!(kept.get_or(8, || None), None);
        assert_eq!(kept.get_or(8, || panic!("asked again")), None);
    }
}

//! Memory that all clients share, and the share of each origin. One pool is for replies that are
//! kept for retries, one for the state of clients.

use std::sync::Arc;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::{Error, Result};

/// A number of bytes, of which parts are given out.
#[derive(Default)]
pub(crate) struct Pool {
    reserved_bytes: AtomicUsize,
    limit_bytes: usize,
}

/// Number of bytes that the clients of one origin use.
#[derive(Default)]
pub(crate) struct PoolShare(AtomicUsize);

/// A pool, and the share of one origin in it.
#[derive(Clone, Copy)]
pub(crate) struct Portion<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) share: &'a PoolShare,
}

impl Pool {
    pub(crate) const fn new(limit_bytes: usize) -> Self {
        Self { reserved_bytes: AtomicUsize::new(0), limit_bytes }
    }

    /// Returns the bytes that must be freed until at most three quarters are given out. Sessions
    /// with live clients are asked for them; expired clients would not answer.
    pub(crate) fn wanted_bytes(&self) -> usize {
        self.reserved_bytes().saturating_sub(self.limit_bytes / 4 * 3)
    }

    /// Returns the bytes that are given out.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Ordering::Acquire)
    }
}

impl PoolShare {
    /// Returns the bytes that the clients of this origin use.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// The bytes that one client uses. They return to the pool when this is dropped.
pub(crate) struct Allotment {
    pool: Arc<Pool>,
    share: Arc<PoolShare>,
    own_bytes: AtomicUsize,
}

impl Allotment {
    /// Makes an empty allotment. Its bytes count towards `share`.
    pub(crate) fn of(pool: &Arc<Pool>, share: Arc<PoolShare>) -> Self {
        Self { pool: Arc::clone(pool), share, own_bytes: AtomicUsize::new(0) }
    }

    /// Takes bytes, by the rule of [`Portion::take`].
    ///
    /// # Errors
    /// [`Error::Resource`]: the rule allows no more.
    pub(crate) fn take(&self, bytes: usize) -> Result<()> {
        if self.portion().take(bytes, 1, 1) == 0 {
            return Err(Error::Resource);
        }
        self.own_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether that many bytes could be taken.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let left = self.pool.limit_bytes.saturating_sub(self.pool.reserved_bytes());
        self.share.bytes() + 2 * bytes <= left
    }

    /// Changes an amount from `before` to `after` bytes, even beyond the limit.
    pub(crate) fn adjust(&self, before: usize, after: usize) {
        match after.checked_sub(before) {
            Some(more) => {
                self.portion().add(more);
                self.own_bytes.fetch_add(more, Ordering::Relaxed);
            }
            None => self.give_back(before - after),
        }
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.own_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.portion().give_back(bytes);
    }

    /// Makes an empty allotment with the same pool and share, for holdings that replace these.
    pub(crate) fn anew(&self) -> Self {
        Self::of(&self.pool, Arc::clone(&self.share))
    }

    fn portion(&self) -> Portion<'_> {
        Portion { pool: &self.pool, share: &self.share }
    }
}

impl Drop for Allotment {
    fn drop(&mut self) {
        self.portion().give_back(self.own_bytes.load(Ordering::Acquire));
    }
}

impl Portion<'_> {
    /// Returns whether more than three quarters are given out, so that some must be freed.
    pub(crate) fn is_short(&self) -> bool {
        self.pool.wanted_bytes() > 0
    }

    /// Takes memory for `wished` things of the given size, or fewer, and returns their number. An
    /// origin may use at most as much as is left for all others afterwards. Some memory is
    /// therefore always left for the next client, even if many clients take all they can get. A
    /// client that has nothing gets `least` things even beyond its share.
    ///
    /// Two sessions of a client that grow at the same moment may both count on the same rest. The
    /// total that is given out never exceeds the pool.
    pub(crate) fn take(&self, each_bytes: usize, least: u32, wished: u32) -> u32 {
        let had = self.share.bytes();
        let mut count = 0;
        let take = |reserved: usize| {
            let left = self.pool.limit_bytes.saturating_sub(reserved);
            let fair = left.saturating_sub(had) / 2 / each_bytes.max(1);
            count = wished.min(fair.try_into().unwrap_or(u32::MAX));
            if count < least && had == 0 && each_bytes * least as usize <= left {
                count = least;
            }
            Some(reserved + each_bytes * count as usize)
        };
        // The closure always returns a value, so the update cannot fail.
        let _ = self.pool.reserved_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        self.share.0.fetch_add(each_bytes * count as usize, Ordering::AcqRel);
        count
    }

    fn add(&self, bytes: usize) {
        self.pool.reserved_bytes.fetch_add(bytes, Ordering::AcqRel);
        self.share.0.fetch_add(bytes, Ordering::AcqRel);
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.pool.reserved_bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.share.0.fetch_sub(bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Clients that use all the memory they can get, and free none.
        #[test]
        fn a_client_leaves_as_much_memory_as_it_has(
            limit_bytes in 0..1_000_000_usize,
            wishes in prop::collection::vec((0..8_usize, 1..10_000_usize, 1..300_u32), 1..100),
        ) {
            let pool = Pool::new(limit_bytes);
            let shares: Vec<_> = (0..8).map(|_| PoolShare::default()).collect();
            for (who, each_bytes, wished) in wishes {
                let share = &shares[who];
                let had = share.bytes();
                let taken = Portion { pool: &pool, share }.take(each_bytes, 0, wished);
                prop_assert_eq!(share.bytes() - had, each_bytes * taken as usize);
                let left = limit_bytes - pool.reserved_bytes();
                prop_assert!(taken == 0 || share.bytes() <= left);
                let one_more = share.bytes() + each_bytes <= left.saturating_sub(each_bytes);
                prop_assert!(taken == wished || !one_more, "{} of {}", taken, wished);
                let all: usize = shares.iter().map(PoolShare::bytes).sum();
                prop_assert_eq!(pool.reserved_bytes(), all);
            }
        }
    }

    #[test]
    fn a_client_without_memory_is_given_the_least_while_it_lasts() {
        let (pool, shares) = (Pool::new(100), [(); 3].map(|()| PoolShare::default()));
        let take = |who: usize| Portion { pool: &pool, share: &shares[who] }.take(10, 4, 8);
        assert_eq!([take(0), take(0)], [5, 0]);
        assert_eq!([take(1), take(1)], [4, 0], "a fair part would be two");
        assert_eq!(take(2), 0, "one is left, and half of it is zero");
        Portion { pool: &pool, share: &shares[0] }.give_back(50);
        assert_eq!(take(2), 4, "a fair part would be three");
        Portion { pool: &pool, share: &shares[1] }.give_back(10);
        let newcomer = PoolShare::default();
        let taken = Portion { pool: &pool, share: &newcomer }.take(10, 4, 8);
        assert_eq!(taken, 1, "the least takes 40 bytes, and 30 are left");
    }

    #[test]
    fn memory_is_short_when_more_than_three_quarters_are_given_out() {
        let (pool, share) = (Pool::new(100), PoolShare::default());
        let portion = Portion { pool: &pool, share: &share };
        portion.add(75);
        assert!(!portion.is_short());
        portion.add(1);
        assert!(portion.is_short());
        assert_eq!(pool.wanted_bytes(), 1);
    }

    #[test]
    fn an_allotment_takes_what_leaves_as_much_for_others_and_returns_all_when_it_is_dropped() {
        let (pool, share) = (Arc::new(Pool::new(100)), Arc::new(PoolShare::default()));
        let allotment = Allotment::of(&pool, Arc::clone(&share));
        assert!(allotment.has_room(50) && !allotment.has_room(51));
        assert!(allotment.take(20).is_ok());
        assert!(allotment.has_room(30) && !allotment.has_room(31));
        assert_eq!(allotment.take(31), Err(Error::Resource));
        assert_eq!((pool.reserved_bytes(), share.bytes()), (20, 20));
        allotment.adjust(5, 125);
        assert_eq!((pool.reserved_bytes(), share.bytes()), (140, 140), "beyond the limit");
        allotment.adjust(125, 15);
        allotment.adjust(15, 15);
        allotment.give_back(10);
        assert_eq!((pool.reserved_bytes(), share.bytes()), (20, 20));
        let other = allotment.anew();
        other.adjust(0, 7);
        drop(allotment);
        assert_eq!((pool.reserved_bytes(), share.bytes()), (7, 7));
        drop(other);
        assert_eq!((pool.reserved_bytes(), share.bytes()), (0, 0));
    }
}

//! Memory that all clients share, and the part of each: one pool for replies that are kept for
//! retries, one for the state of clients.

use std::sync::Arc;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::{Error, Result};

/// Memory of which parts are given out.
#[derive(Default)]
pub(crate) struct Pool {
    reserved_bytes: AtomicUsize,
    limit_bytes: usize,
}

/// Bytes of it that the clients of one origin have.
#[derive(Default)]
pub(crate) struct PoolShare(AtomicUsize);

/// The memory as the clients of one origin meet it.
#[derive(Clone, Copy)]
pub(crate) struct Portion<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) share: &'a PoolShare,
}

impl Pool {
    pub(crate) const fn new(limit_bytes: usize) -> Self {
        Self { reserved_bytes: AtomicUsize::new(0), limit_bytes }
    }

    /// Bytes that must come back until three quarters are given out and no more: sessions shrink
    /// for that, and clients that do not come back are not waited for.
    pub(crate) fn wanted_bytes(&self) -> usize {
        self.reserved_bytes().saturating_sub(self.limit_bytes / 4 * 3)
    }

    /// Bytes that have been given out.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Ordering::Acquire)
    }
}

impl PoolShare {
    /// Bytes that those clients have.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// The part of a pool that one client has; it goes back when this is dropped.
pub(crate) struct Allotment {
    pool: Arc<Pool>,
    share: Arc<PoolShare>,
    own_bytes: AtomicUsize,
}

impl Allotment {
    /// Makes an empty allotment, whose memory counts for the clients that have `share` together.
    pub(crate) fn of(pool: &Arc<Pool>, share: Arc<PoolShare>) -> Self {
        Self { pool: Arc::clone(pool), share, own_bytes: AtomicUsize::new(0) }
    }

    /// Takes so many bytes, as [`Portion::take`] has it.
    ///
    /// # Errors
    /// [`Error::Resource`].
    pub(crate) fn take(&self, bytes: usize) -> Result<()> {
        if self.portion().take(bytes, 1, 1) == 0 {
            return Err(Error::Resource);
        }
        self.own_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether so many bytes could be taken.
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

    /// Shares the memory for another client's holdings that take this one's place.
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
    /// Returns whether so much is given out that some must come back.
    pub(crate) fn is_short(&self) -> bool {
        self.pool.wanted_bytes() > 0
    }

    /// Takes the memory for as many things of such a size as wished, or fewer, and returns the
    /// count: a client may have as much as is left for all others then, and not more. So some is
    /// always left for the next client, however many want all of it. A client that has nothing is
    /// given `least` even beyond that.
    ///
    /// Two sessions of a client that grow at the same moment may both count on the same rest. All
    /// that is given out is never more than there is.
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
        // It always has an answer, though that be nothing.
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
        /// Clients that take all they get, and give nothing back.
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
        assert_eq!(take(2), 0, "there is one left, of which half is none");
        Portion { pool: &pool, share: &shares[0] }.give_back(50);
        assert_eq!(take(2), 4, "a fair part would be three");
    }
}

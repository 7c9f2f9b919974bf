//! The memory for replies that are kept for retries: what all clients share, and what is one's own
//! of it.

use crate::sync::atomic::{AtomicUsize, Ordering};

/// How much of the replies' memory has been given out.
#[derive(Default)]
pub(crate) struct ReplyCache {
    reserved_bytes: AtomicUsize,
    limit_bytes: usize,
}

/// How much of it one client's sessions have.
#[derive(Default)]
pub(crate) struct ReplyShare(AtomicUsize);

/// The memory as a client meets it.
#[derive(Clone, Copy)]
pub(super) struct Replies<'a> {
    pub(super) cache: &'a ReplyCache,
    pub(super) share: &'a ReplyShare,
}

impl ReplyCache {
    pub(crate) const fn new(limit_bytes: usize) -> Self {
        Self { reserved_bytes: AtomicUsize::new(0), limit_bytes }
    }

    /// Bytes that must come back until three quarters are given out and no more: sessions shrink
    /// for that.
    pub(super) fn wanted_bytes(&self) -> usize {
        self.reserved_bytes().saturating_sub(self.limit_bytes / 4 * 3)
    }

    /// Bytes that replies may take up by what has been agreed on.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Ordering::Acquire)
    }
}

impl ReplyShare {
    /// Bytes that the client's replies may take up.
    pub(super) fn bytes(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Replies<'_> {
    /// Whether so much is given out that sessions shrink.
    pub(super) fn is_short(&self) -> bool {
        self.cache.wanted_bytes() > 0
    }

    /// Takes what this many slots of such a size need, or fewer, and tells how many: a client may
    /// have as much as is left for all others then, and not more. So some is always left for who
    /// comes next, however many want all of it. Who has nothing is given `least` even beyond that.
    ///
    /// Two sessions of a client that grow at the same moment may both count on the same rest. All
    /// that is given out is never more than there is.
    pub(super) fn take(&self, slot_bytes: usize, least: u32, wished: u32) -> u32 {
        let had = self.share.bytes();
        let mut count = 0;
        let take = |reserved: usize| {
            let left = self.cache.limit_bytes.saturating_sub(reserved);
            let fair = left.saturating_sub(had) / 2 / slot_bytes.max(1);
            count = wished.min(fair.try_into().unwrap_or(u32::MAX));
            if count < least && had == 0 && slot_bytes * least as usize <= left {
                count = least;
            }
            Some(reserved + slot_bytes * count as usize)
        };
        // It always has an answer, though that be nothing.
        let _ = self.cache.reserved_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        self.share.0.fetch_add(slot_bytes * count as usize, Ordering::AcqRel);
        count
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.cache.reserved_bytes.fetch_sub(bytes, Ordering::AcqRel);
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
        fn who_has_something_leaves_others_as_much(
            limit_bytes in 0..1_000_000_usize,
            wishes in prop::collection::vec((0..8_usize, 1..10_000_usize, 1..300_u32), 1..100),
        ) {
            let cache = ReplyCache::new(limit_bytes);
            let shares: Vec<_> = (0..8).map(|_| ReplyShare::default()).collect();
            for (who, slot_bytes, wished) in wishes {
                let share = &shares[who];
                let had = share.bytes();
                let taken = Replies { cache: &cache, share }.take(slot_bytes, 0, wished);
                prop_assert_eq!(share.bytes() - had, slot_bytes * taken as usize);
                let left = limit_bytes - cache.reserved_bytes();
                prop_assert!(taken == 0 || share.bytes() <= left);
                let one_more = share.bytes() + slot_bytes <= left.saturating_sub(slot_bytes);
                prop_assert!(taken == wished || !one_more, "{} of {}", taken, wished);
                let all: usize = shares.iter().map(ReplyShare::bytes).sum();
                prop_assert_eq!(cache.reserved_bytes(), all);
            }
        }
    }

    #[test]
    fn who_has_nothing_is_given_the_least_while_there_is_that() {
        let (cache, shares) = (ReplyCache::new(100), [(); 3].map(|()| ReplyShare::default()));
        let take = |who: usize| Replies { cache: &cache, share: &shares[who] }.take(10, 4, 8);
        assert_eq!([take(0), take(0)], [5, 0]);
        assert_eq!([take(1), take(1)], [4, 0], "a fair part would be two");
        assert_eq!(take(2), 0, "there is one left, of which half is none");
        Replies { cache: &cache, share: &shares[0] }.give_back(50);
        assert_eq!(take(2), 4, "a fair part would be three");
    }
}

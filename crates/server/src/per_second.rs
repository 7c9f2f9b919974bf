use std::sync::atomic::{AtomicU64, Ordering};

/// A count that starts at zero in each second.
#[derive(Default)]
pub(crate) struct PerSecond(AtomicU64);

impl PerSecond {
    /// Adds one to the count of this second, unless it is `most` already; returns whether it did.
    pub(crate) fn take(&self, second: u32, most: u32) -> bool {
        let taken = |packed: u64| if (packed >> 32) as u32 == second { packed as u32 } else { 0 };
        let next = |packed: u64| {
            let count = taken(packed);
            (count < most).then(|| u64::from(second) << 32 | u64::from(count + 1))
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_is_counted_in_each_second() {
        let counted = PerSecond::default();
        let takes = |second, most| (0..10).filter(|_| counted.take(second, most)).count();
        assert_eq!(takes(1, 0), 0);
        assert_eq!(takes(1, 3), 3);
        assert_eq!(takes(1, 4), 1, "a higher bound counts what was taken before");
        assert_eq!(takes(2, 3), 3, "each second begins at zero");
        assert_eq!(takes(1, 3), 3, "an earlier second is another one");
    }

    #[test]
    fn threads_together_take_no_more_than_the_bound() {
        let counted = PerSecond::default();
        let take_all = || (0..1000).filter(|_| counted.take(9, 500)).count();
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take_all)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 500);
    }
}

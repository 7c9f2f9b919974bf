use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::passthrough::limits::{
    DESCRIPTORS_DEFAULT, DESCRIPTORS_LEAST, DESCRIPTORS_PER_OBJECT, DESCRIPTORS_RESERVED,
};

/// The descriptors that the file systems of a process may keep open. Each may use those that the
/// others do not need; when all are used, file systems with more than an equal part close some.
#[derive(Debug, Clone)]
pub struct Descriptors(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    most: usize,
    open: AtomicUsize,
    sharers: AtomicUsize,
    pinned: AtomicUsize,
}

/// The descriptors of one file system.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Arc<Pool>,
    open: AtomicUsize,
    /// Number of objects that must stay open.
    pinned: AtomicUsize,
}

impl Descriptors {
    /// A budget of at most `most` descriptors for all file systems that share it.
    #[must_use]
    pub fn at_most(most: usize) -> Self {
        let [open, sharers, pinned] = [const { AtomicUsize::new(0) }; 3];
        Self(Arc::new(Pool { most, open, sharers, pinned }))
    }

    /// Returns the budget of the process: its limit without a reserve and the part for connections.
    /// Raises the process's limit of open files to the hard limit.
    #[must_use]
    pub fn of_process() -> Self {
        Self::at_most(part_of(raise_limit()))
    }

    /// Returns the number of files that may have a lease at the same time.
    #[must_use]
    pub fn leases_max(&self) -> usize {
        self.0.pinned_max()
    }

    /// Returns the number of files in which bytes may be locked at the same time: the rest is for
    /// files that are used without locks.
    #[must_use]
    pub fn locked_files_max(&self) -> usize {
        self.0.locked_files_max()
    }

    /// Returns the share of one more file system.
    pub(crate) fn share(&self) -> Share {
        self.0.sharers.fetch_add(1, Ordering::Relaxed);
        let [open, pinned] = [const { AtomicUsize::new(0) }; 2];
        Share { pool: Arc::clone(&self.0), open, pinned }
    }
}

impl Share {
    /// The number of open descriptors of this file system.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Counts a descriptor that was opened.
    pub(crate) fn opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.pool.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Subtracts descriptors that were closed.
    pub(crate) fn closed(&self, count: usize) {
        self.open.fetch_sub(count, Ordering::Relaxed);
        self.pool.open.fetch_sub(count, Ordering::Relaxed);
    }

    /// Pins one more object, whose descriptors then stay open until [`Share::unpin`]. Returns
    /// `false` if half of all descriptors may be pinned already.
    pub(crate) fn pin(&self) -> bool {
        let most = self.pool.pinned_max();
        let pin = |pinned| (pinned < most).then_some(pinned + 1);
        let pinned = self.pool.pinned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pin);
        self.pinned.fetch_add(usize::from(pinned.is_ok()), Ordering::Relaxed);
        pinned.is_ok()
    }

    /// Undoes a pin: the descriptors of the object may be closed again.
    pub(crate) fn unpin(&self) {
        self.pinned.fetch_sub(1, Ordering::Relaxed);
        self.pool.pinned.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of descriptors that this file system should close.
    pub(crate) fn excess(&self) -> usize {
        let (all, part) = self.pool.bounds();
        let too_many = self.pool.open.load(Ordering::Relaxed).saturating_sub(all);
        too_many.min(self.open().saturating_sub(part))
    }

    /// Returns the most that may be open.
    pub(crate) fn most(&self) -> usize {
        self.pool.most
    }

    /// See [`Descriptors::locked_files_max`].
    pub(crate) fn locked_files_max(&self) -> usize {
        self.pool.locked_files_max()
    }

    /// Returns whether one more descriptor would exceed the budget.
    pub(crate) fn is_full(&self) -> bool {
        let (all, part) = self.pool.bounds();
        self.pool.open.load(Ordering::Relaxed) >= all && self.open() >= part
    }

    /// Returns whether less than half of the budget is used.
    pub(crate) fn is_roomy(&self) -> bool {
        self.pool.open.load(Ordering::Relaxed) < self.pool.bounds().0 / 2
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.open.fetch_sub(*self.open.get_mut(), Ordering::Relaxed);
        self.pool.pinned.fetch_sub(*self.pinned.get_mut(), Ordering::Relaxed);
        self.pool.sharers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// Returns the number of objects that may stay open: half of all descriptors are for others.
    const fn pinned_max(&self) -> usize {
        self.most / (2 * DESCRIPTORS_PER_OBJECT)
    }

    const fn locked_files_max(&self) -> usize {
        self.most.saturating_sub(DESCRIPTORS_LEAST) / 2
    }

    /// Returns the total number of open descriptors above which sharers close some, and the number
    /// that each sharer may always keep. A sharer that has many and opens no more keeps them: the
    /// others can have their parts even then.
    fn bounds(&self) -> (usize, usize) {
        let sharers = self.sharers.load(Ordering::Relaxed).max(1);
        let all = (self.most / (2 * sharers - 1)).saturating_mul(sharers);
        (all, (all / sharers).max(DESCRIPTORS_LEAST))
    }
}

/// Raises the limit of open files to the hard limit; returns it.
fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    now.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Connections may use half of the descriptors, so that a walk through a big tree cannot prevent
/// them.
fn part_of(limit: usize) -> usize {
    let files = limit - limit / 2;
    let reserve = DESCRIPTORS_RESERVED.min(files / 2);
    (files - reserve).min(DESCRIPTORS_DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_never_takes_all() {
        assert_eq!(part_of(1024), 256);
        assert_eq!(part_of(20_000), 8_976);
        for limit in [1_024, 4_096, 65_536, 1 << 20] {
            assert!(part_of(limit) + limit / 2 < limit, "{limit}: no room for connections");
        }
        assert_eq!(part_of(usize::MAX), DESCRIPTORS_DEFAULT);
    }

    #[test]
    fn as_many_objects_can_be_pinned_as_there_may_be_leases() {
        let all = Descriptors::at_most(100);
        let share = all.share();
        assert_eq!((0..100).filter(|_| share.pin()).count(), all.leases_max());
        assert_eq!(all.leases_max(), 25);
    }

    #[test]
    fn one_may_take_what_others_leave_and_gives_way_when_they_come() {
        let all = Descriptors::at_most(900);
        let (first, second) = (all.share(), all.share());
        let open = |share: &Share, count| (0..count).for_each(|_| share.opened());
        open(&first, 600);
        assert_eq!(first.excess(), 0, "no other file system needs any");
        open(&second, 300);
        assert_eq!((first.excess(), second.excess()), (300, 0));
        first.closed(200);
        assert_eq!(first.excess(), 100);
        drop(second);
        assert_eq!(first.excess(), 0);
    }

    #[test]
    fn together_they_keep_to_the_bound_even_if_one_sits_on_all_it_could_get() {
        for sharers in 1..20 {
            let all = Descriptors::at_most(100_000);
            let shares: Vec<_> = (0..sharers).map(|_| all.share()).collect();
            for share in &shares {
                while share.open() < 100_000 {
                    share.opened();
                    if share.excess() > 0 {
                        share.closed(share.excess());
                        break;
                    }
                }
            }
            let open: usize = shares.iter().map(Share::open).sum();
            assert!(open <= 100_000, "{open} of {sharers}");
        }
    }
}

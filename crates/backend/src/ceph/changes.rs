use std::sync::atomic::{AtomicU64, Ordering};

use comity_vfs::{Attr, Disk};

use super::ffi::Vino;
use super::limits::CHANGE_SLOTS;

/// Counters by which a change finds out whether another one of the same object through any mount of
/// this server came between its attributes from before and from after.
///
/// Each counter has the number of changes under way in its lower half, and the number of those
/// that have begun in its upper half.
#[derive(Debug)]
pub(super) struct ChangeCounters(Box<[AtomicU64]>);

const BEGUN: u64 = 1 << 32;

/// A change that is under way, until it is dropped.
#[derive(Debug)]
pub(super) struct Change<'c> {
    slot: &'c AtomicU64,
    /// The counter with this change, if no other one was under way.
    alone: Option<u64>,
}

impl Default for ChangeCounters {
    fn default() -> Self {
        Self((0..CHANGE_SLOTS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl ChangeCounters {
    /// Begins a change of an object of a volume; the attributes from before are read afterwards.
    pub(super) fn begin(&self, volume: u64, vino: Vino) -> Change<'_> {
        let slot = &self.0[(volume ^ vino.ino ^ vino.snapid) as usize % CHANGE_SLOTS];
        let before = slot.fetch_add(BEGUN + 1, Ordering::SeqCst);
        let alone = before.is_multiple_of(BEGUN).then_some(before.wrapping_add(BEGUN + 1));
        Change { slot, alone }
    }
}

impl Change<'_> {
    /// Ends the change, between these attributes. Those from before are left out if another change
    /// may have come between.
    pub(super) fn end(
        self,
        before: Attr<Disk>,
        after: Option<Attr<Disk>>,
    ) -> comity_vfs::Change<Disk> {
        let counted = after.map(|after| after.change.wrapping_sub(before.change));
        let is_only_one = self.is_alone() && is_one_change(counted);
        comity_vfs::Change { before: is_only_one.then_some(before), after }
    }

    /// Returns whether no other change through this server has been under way since this one began.
    fn is_alone(&self) -> bool {
        self.alone == Some(self.slot.load(Ordering::SeqCst))
    }
}

/// Returns whether Ceph has counted one change at most. It counts most of them once, those of its
/// other clients too.
fn is_one_change(counted: Option<u64>) -> bool {
    counted.is_none_or(|counted| counted <= 1)
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.slot.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Vino = Vino { ino: 1, snapid: 0 };

    #[test]
    fn changes_of_other_clients_of_ceph_are_counted_by_it() {
        assert!(is_one_change(None) && is_one_change(Some(0)) && is_one_change(Some(1)));
        assert!(!is_one_change(Some(2)) && !is_one_change(Some(u64::MAX)));
    }

    #[test]
    fn changes_that_overlap_are_not_alone() {
        let changes = ChangeCounters::default();
        let first = changes.begin(0, A);
        assert!(first.is_alone());
        let other = changes.begin(0, Vino { ino: 2, snapid: 0 });
        assert!(first.is_alone() && other.is_alone(), "it is another object");
        let second = changes.begin(0, A);
        assert!(!first.is_alone() && !second.is_alone());
        drop(second);
        assert!(!first.is_alone(), "the second change has come between");
        drop(first);
        assert!(changes.begin(0, A).is_alone());
    }
}

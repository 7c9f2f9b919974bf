use std::collections::BTreeSet;

use crate::limits::SLOTS_MAX;

/// The slots of a session (RFC 8881, 2.10.6.1). The lowest free slot is used first, so that the
/// highest ones become free soon when the server reduces their number.
#[derive(Debug)]
pub(super) struct SlotTable {
    slots: Vec<SlotState>,
    free: BTreeSet<u32>,
    /// Number of slots for new requests; higher slots are no longer used.
    usable: u32,
    /// Number of requests that have been given a slot.
    taken: u64,
    /// The value of `taken` when a target of the server was last applied. Replies to earlier
    /// requests may carry an older target and are ignored.
    followed: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct SlotState {
    /// The sequence number of the last request that the server accepted.
    sequenceid: u32,
    is_busy: bool,
    /// The value of the session's `taken` when this slot was last taken.
    taken: u64,
}

/// A slot for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotUse {
    /// The slot.
    pub(super) slot: u32,
    /// The request's sequence number in the slot.
    pub(super) sequenceid: u32,
}

impl SlotTable {
    /// The slots of a new session.
    pub(super) fn new(granted: u32) -> Self {
        let usable = granted.clamp(1, SLOTS_MAX);
        let slots = vec![SlotState::default(); usable as usize];
        Self { slots, free: (0..usable).collect(), usable, taken: 0, followed: 0 }
    }

    /// Returns whether a usable slot is free.
    pub(super) fn has_free(&self) -> bool {
        self.free.first().is_some_and(|slot| *slot < self.usable)
    }

    /// Takes the lowest usable slot that is free.
    pub(super) fn take(&mut self) -> Option<SlotUse> {
        let slot = *self.free.first().filter(|slot| **slot < self.usable)?;
        self.free.remove(&slot);
        self.taken += 1;
        let state = self.slots.get_mut(slot as usize)?;
        (state.is_busy, state.taken) = (true, self.taken);
        Some(SlotUse { slot, sequenceid: state.sequenceid.wrapping_add(1) })
    }

    /// Releases a slot. If the server accepted the request (`was_begun`), the next one gets the
    /// next sequence number.
    pub(super) fn give_back(&mut self, slot: u32, was_begun: bool) {
        let Some(state) = self.slots.get_mut(slot as usize).filter(|state| state.is_busy) else {
            return;
        };
        state.is_busy = false;
        if was_begun {
            state.sequenceid = state.sequenceid.wrapping_add(1);
        }
        self.free.insert(slot);
    }

    /// The highest slot in use, for SEQUENCE (`sa_highest_slotid`).
    pub(super) fn highest_used(&self) -> u32 {
        self.slots.iter().rposition(|state| state.is_busy).unwrap_or(0) as u32
    }

    /// Applies the reply to the last request of a slot (RFC 8881, 18.46.3): the highest slot that
    /// the server has, and its target. Replies may arrive out of order, so replies to requests sent
    /// before the last target was applied are ignored.
    pub(super) fn follow(&mut self, slot: u32, highest: u32, target: u32) {
        let is_new = |state: &SlotState| state.taken > self.followed;
        if !self.slots.get(slot as usize).is_some_and(is_new) {
            return;
        }
        let wanted = target.saturating_add(1).clamp(1, SLOTS_MAX);
        if wanted != self.usable || highest.saturating_add(1) < self.slots.len() as u32 {
            self.drop_above(highest);
            self.set_target(target);
        }
    }

    /// Applies CB_RECALL_SLOT: the highest slot that the server wants in use.
    pub(super) fn set_target(&mut self, target: u32) {
        self.followed = self.taken;
        self.usable = target.saturating_add(1).clamp(1, SLOTS_MAX);
        while (self.slots.len() as u32) < self.usable {
            self.free.insert(self.slots.len() as u32);
            self.slots.push(SlotState::default());
        }
    }

    /// Handles BADSLOT: stops using this slot and all higher ones.
    pub(super) fn refuse(&mut self, slot: u32) {
        self.usable = self.usable.min(slot.max(1));
    }

    /// Number of usable slots.
    #[cfg(test)]
    pub(super) const fn usable(&self) -> u32 {
        self.usable
    }

    /// Removes idle slots that the server has dropped. A slot that is added again starts at
    /// sequence number 1.
    fn drop_above(&mut self, highest: u32) {
        let is_idle = |state: &SlotState| !state.is_busy;
        while self.slots.len() as u64 > u64::from(highest) + 1
            && self.slots.len() > 1
            && self.slots.last().is_some_and(is_idle)
        {
            self.slots.pop();
            self.free.remove(&(self.slots.len() as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_number_counts_the_accepted_requests() {
        let mut slots = SlotTable::new(2);
        assert_eq!(slots.take(), Some(SlotUse { slot: 0, sequenceid: 1 }));
        assert_eq!(slots.take(), Some(SlotUse { slot: 1, sequenceid: 1 }));
        assert_eq!((slots.take(), slots.highest_used()), (None, 1));
        slots.give_back(0, true);
        slots.give_back(1, false);
        assert_eq!(slots.take(), Some(SlotUse { slot: 0, sequenceid: 2 }));
        assert_eq!(slots.take(), Some(SlotUse { slot: 1, sequenceid: 1 }));
    }

    fn take_all(slots: &mut SlotTable) -> Vec<SlotUse> {
        std::iter::from_fn(|| slots.take()).collect()
    }

    #[test]
    fn slots_above_the_target_are_not_used_until_the_target_rises() {
        let mut slots = SlotTable::new(8);
        let taken = take_all(&mut slots);
        assert_eq!(taken.len(), 8);
        slots.set_target(1);
        taken.iter().for_each(|taken| slots.give_back(taken.slot, true));
        let again = take_all(&mut slots);
        assert_eq!(again.iter().map(|taken| taken.slot).collect::<Vec<_>>(), [0, 1]);
        slots.set_target(9);
        let more = take_all(&mut slots);
        assert_eq!(more.len(), 8);
        assert_eq!(more[0], SlotUse { slot: 2, sequenceid: 2 });
        assert_eq!(more[7], SlotUse { slot: 9, sequenceid: 1 });
    }

    #[test]
    fn a_slot_that_was_dropped_and_added_again_starts_at_one() {
        let mut slots = SlotTable::new(4);
        take_all(&mut slots).iter().for_each(|taken| slots.give_back(taken.slot, true));
        slots.take();
        slots.follow(0, 1, 1);
        slots.give_back(0, true);
        slots.take();
        slots.follow(0, 3, 3);
        slots.give_back(0, true);
        let sequenceids: Vec<u32> =
            take_all(&mut slots).iter().map(|taken| taken.sequenceid).collect();
        assert_eq!(sequenceids, [4, 2, 1, 1]);
    }

    #[test]
    fn a_target_in_a_late_reply_is_ignored() {
        let mut slots = SlotTable::new(2);
        take_all(&mut slots);
        slots.follow(1, 3, 3);
        // The reply in slot 0 belongs to an earlier request.
        slots.follow(0, 1, 1);
        assert_eq!(slots.usable, 4);
    }

    #[test]
    fn a_target_above_the_limit_is_reduced_to_it() {
        let mut slots = SlotTable::new(u32::MAX);
        slots.set_target(u32::MAX);
        slots.take();
        slots.follow(0, u32::MAX, u32::MAX);
        assert_eq!((slots.usable, slots.slots.len()), (SLOTS_MAX, SLOTS_MAX as usize));
    }
}

use std::collections::HashMap;

use crate::ClientId;
use crate::id_hasher::BuildIdHasher;
use crate::limits::FOREIGN_IDS_MAX;
use crate::sync::PoisonError;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Clientids that other engines have given out, by their numbers. Their clients came with their
/// state. An entry stays when its client is gone, so that stateids of the client are known to have
/// expired, and no other client gets its number.
#[derive(Default)]
pub(super) struct ForeignIds {
    by_number: RwLock<HashMap<u32, ClientId, BuildIdHasher>>,
    count: AtomicUsize,
}

impl ForeignIds {
    /// Returns the clientid with this number. The cost is one atomic load if there are none.
    pub(super) fn get(&self, number: u32) -> Option<ClientId> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.by_number.read().unwrap_or_else(PoisonError::into_inner).get(&number).copied()
    }

    /// Adds a clientid; returns the one of the same number that it replaces.
    pub(super) fn add(&self, id: ClientId) -> Option<ClientId> {
        let mut ids = self.by_number.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = ids.insert(id.number(), id);
        self.count.store(ids.len(), Ordering::Release);
        replaced
    }

    /// Forgets the clientid with this number, and returns it.
    pub(super) fn forget(&self, number: u32) -> Option<ClientId> {
        let mut ids = self.by_number.write().unwrap_or_else(PoisonError::into_inner);
        let forgotten = ids.remove(&number);
        self.count.store(ids.len(), Ordering::Release);
        forgotten
    }

    /// Notes that the client with this clientid is gone. Its number is reserved for as long as
    /// there are few.
    pub(super) fn release(&self, id: ClientId) {
        let is_full = self.count.load(Ordering::Acquire) > FOREIGN_IDS_MAX;
        if is_full && self.get(id.number()) == Some(id) {
            self.forget(id.number());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn id(high: u64, number: u32) -> ClientId {
        ClientId(high << 32 | number as u64)
    }

    #[test]
    fn a_clientid_is_known_until_it_is_forgotten() {
        let ids = ForeignIds::default();
        assert_eq!(ids.get(7), None);
        assert_eq!(ids.add(id(1, 7)), None);
        assert_eq!(ids.add(id(2, 7)), Some(id(1, 7)));
        assert_eq!(ids.get(7), Some(id(2, 7)), "the last one counts");
        ids.release(id(2, 7));
        assert_eq!(ids.get(7), Some(id(2, 7)), "its client is gone");
        assert_eq!(ids.forget(7), Some(id(2, 7)));
        assert_eq!((ids.get(7), ids.forget(7)), (None, None));
    }

    #[test]
    fn a_clientid_is_forgotten_with_its_client_if_there_are_too_many() {
        let ids = ForeignIds::default();
        let replaced = (0..=FOREIGN_IDS_MAX as u32).filter_map(|number| ids.add(id(1, number)));
        assert_eq!(replaced.count(), 0);
        ids.release(id(2, 7));
        assert_eq!(ids.get(7), Some(id(1, 7)), "another clientid was released");
        ids.release(id(1, 7));
        assert_eq!(ids.get(7), None);
        ids.release(id(1, 8));
        assert_eq!(ids.get(8), Some(id(1, 8)), "there are few enough now");
    }
}

//! The objects that keys without an account have made.

use std::collections::{HashMap, HashSet, VecDeque};

use comity_keys::PublicKey;
use foldhash::fast::RandomState;

use crate::creation::Creation;
use crate::limits::{CREATIONS_MAX, CREATIONS_PER_KEY_MAX};
use crate::{ObjectId, Record};

/// The creators of objects. A creator may fetch a credential for its object; nothing is signed
/// before it does.
#[derive(Debug, Default)]
pub(crate) struct Creations {
    by_object: HashMap<ObjectId, Creation, RandomState>,
    /// The objects of each creator, oldest first.
    by_creator: HashMap<PublicKey, VecDeque<ObjectId>>,
    /// The number of the next creation.
    next: u64,
    /// Objects whose stored record is out of date; an object may be there twice.
    changed: Vec<ObjectId>,
}

impl Creations {
    /// Loads the creators that an earlier run of the server has stored.
    pub(crate) fn recovered(mut made: Vec<Creation>) -> Self {
        made.sort_by_key(|creation| creation.number);
        let mut creations = Self::default();
        for Creation { object, creator, number } in made {
            creations.next = number;
            creations.insert(object, creator);
        }
        // The records of the others are stored already.
        let known = &creations.by_object;
        creations.changed.retain(|object| !known.contains_key(object));
        creations
    }

    /// Remembers the creator of an object. If there is no room, the oldest object of the same
    /// creator is forgotten; if it has none, the new one is not remembered.
    pub(crate) fn insert(&mut self, object: ObjectId, creator: PublicKey) {
        self.remove(&object);
        let is_full = self.by_object.len() >= CREATIONS_MAX;
        let own = self.by_creator.entry(creator).or_default();
        if is_full || own.len() >= CREATIONS_PER_KEY_MAX {
            let Some(oldest) = own.pop_front() else {
                self.by_creator.remove(&creator);
                return;
            };
            self.by_object.remove(&oldest);
            self.changed.push(oldest);
        }
        own.push_back(object);
        self.by_object.insert(object, Creation { object, creator, number: self.next });
        self.next = self.next.saturating_add(1);
        self.changed.push(object);
    }

    /// The records of all changes since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<Record> {
        let changed: HashSet<_> = std::mem::take(&mut self.changed).into_iter().collect();
        changed.into_iter().map(|object| self.record(object)).collect()
    }

    /// The record to store for an object.
    pub(crate) fn record(&self, object: ObjectId) -> Record {
        let made = self.by_object.get(&object);
        made.map_or(Record::Unmade(object), |creation| Record::Made(*creation))
    }

    /// All creations.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Creation> {
        self.by_object.values()
    }

    /// The creator of an object, if it is known.
    pub(crate) fn creator(&self, object: &ObjectId) -> Option<&PublicKey> {
        self.by_object.get(object).map(|creation| &creation.creator)
    }

    /// Forgets who made an object.
    pub(crate) fn remove(&mut self, object: &ObjectId) {
        let Some(Creation { creator, .. }) = self.by_object.remove(object) else { return };
        self.changed.push(*object);
        let Some(own) = self.by_creator.get_mut(&creator) else { return };
        own.retain(|other| other != object);
        if own.is_empty() {
            self.by_creator.remove(&creator);
        }
    }

    /// Returns how many objects have a known creator.
    pub(crate) fn len(&self) -> usize {
        self.by_object.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_keys::{Algorithm, PrivateKey, Signer};
    use comity_vfs::Handle;

    #[test]
    fn the_oldest_of_the_same_creator_makes_room() {
        let [one, other] =
            [(); 2].map(|()| *PrivateKey::generate(Algorithm::Ed25519).unwrap().public_key());
        let object = |number: usize| ObjectId(Handle::new(&number.to_be_bytes()).unwrap());
        let mut creations = Creations::default();
        creations.insert(object(0), other);
        for number in 1..=CREATIONS_PER_KEY_MAX + 1 {
            creations.insert(object(number), one);
        }
        assert_eq!(creations.len(), CREATIONS_PER_KEY_MAX + 1);
        assert_eq!(creations.creator(&object(0)), Some(&other));
        assert_eq!(creations.creator(&object(1)), None);
        assert_eq!(creations.creator(&object(2)), Some(&one));
        creations.remove(&object(0));
        assert_eq!(creations.creator(&object(0)), None);
        assert_eq!(creations.by_creator.len(), 1);
    }

    #[test]
    fn changes_are_returned_once_and_a_restart_keeps_the_order() {
        let creator = *PrivateKey::generate(Algorithm::Ed25519).unwrap().public_key();
        let object = |number: usize| ObjectId(Handle::new(&number.to_be_bytes()).unwrap());
        let mut before = Creations::default();
        (0..CREATIONS_PER_KEY_MAX).for_each(|number| before.insert(object(number), creator));
        assert_eq!(before.take_changes().len(), CREATIONS_PER_KEY_MAX);
        assert_eq!(before.take_changes(), []);
        let mut after = Creations::recovered(before.iter().copied().collect());
        assert_eq!(after.take_changes(), []);
        after.insert(object(CREATIONS_PER_KEY_MAX), creator);
        assert_eq!(after.creator(&object(0)), None);
        let mut changes = after.take_changes();
        changes.sort_by_key(|change| matches!(change, Record::Made(_)));
        let number = CREATIONS_PER_KEY_MAX as u64;
        let made = Creation { object: object(CREATIONS_PER_KEY_MAX), creator, number };
        assert_eq!(changes, [Record::Unmade(object(0)), Record::Made(made)]);
    }
}

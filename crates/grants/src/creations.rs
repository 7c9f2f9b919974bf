//! The objects that keys without an account have made.

use std::collections::{HashMap, VecDeque};

use comity_keys::PublicKey;

use crate::ObjectId;
use crate::limits::{CREATIONS_MAX, CREATIONS_PER_KEY_MAX};

/// The creators of objects. A creator may be given a credential for what it has made; until it
/// asks for that, nothing is signed.
#[derive(Debug, Default)]
pub(crate) struct Creations {
    by_object: HashMap<ObjectId, PublicKey>,
    /// The objects of each creator, the oldest first.
    by_creator: HashMap<PublicKey, VecDeque<ObjectId>>,
}

impl Creations {
    /// Remembers who made an object. The oldest of the same creator makes room; a creator who has
    /// none finds no room once all is used up.
    pub(crate) fn insert(&mut self, object: ObjectId, creator: PublicKey) {
        self.remove(&object);
        let is_full = self.by_object.len() >= CREATIONS_MAX;
        let own = self.by_creator.get(&creator).map_or(0, VecDeque::len);
        if is_full || own >= CREATIONS_PER_KEY_MAX {
            let oldest = self.by_creator.get_mut(&creator).and_then(VecDeque::pop_front);
            let Some(oldest) = oldest else { return };
            self.by_object.remove(&oldest);
        }
        self.by_object.insert(object, creator);
        self.by_creator.entry(creator).or_default().push_back(object);
    }

    /// The creator of an object, if it is known.
    pub(crate) fn creator(&self, object: &ObjectId) -> Option<&PublicKey> {
        self.by_object.get(object)
    }

    /// Forgets who made an object.
    pub(crate) fn remove(&mut self, object: &ObjectId) {
        let Some(creator) = self.by_object.remove(object) else { return };
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
}

//! The callers of a mount, each with its number and its AUTH_SYS credential.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use comity_vfs::{Cred, Disk, Handle};

use crate::compound::OpenOwner;
use crate::limits::{CALLERS_MAX, HINTS};
use crate::rpc::auth_sys;

/// The callers of one mount.
#[derive(Debug)]
pub(crate) struct Callers {
    machine_name: Vec<u8>,
    known: Mutex<KnownCallers>,
    hints: Hints,
}

#[derive(Debug, Default)]
struct KnownCallers {
    by_cred: HashMap<Cred<Disk>, Arc<OpenOwner>>,
    by_id: HashMap<u32, Arc<OpenOwner>>,
    last: u32,
}

impl Callers {
    pub(crate) fn new(machine_name: &[u8]) -> Self {
        let known = Mutex::default();
        Self { machine_name: machine_name.to_vec(), known, hints: Hints::new() }
    }

    /// The caller with these credentials.
    pub(crate) fn of(&self, cred: &Cred<Disk>) -> Arc<OpenOwner> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = known.by_cred.get(cred) {
            return Arc::clone(caller);
        }
        if known.by_cred.len() >= CALLERS_MAX {
            // The table is full: forget all callers. One that calls again gets a new number.
            known.by_cred.clear();
            known.by_id.clear();
        }
        known.last += 1;
        let credential = auth_sys(cred, &self.machine_name);
        let caller = Arc::new(OpenOwner { id: known.last, credential });
        known.by_cred.insert(cred.clone(), Arc::clone(&caller));
        known.by_id.insert(caller.id, Arc::clone(&caller));
        caller
    }

    /// Returns the caller with these credentials, and remembers that it used this object.
    pub(crate) fn using(&self, cred: &Cred<Disk>, node: &Handle) -> Arc<OpenOwner> {
        let caller = self.of(cred);
        self.hints.note(node, caller.id);
        caller
    }

    /// Returns the caller that used this object last, or `None` if that is not remembered. Verbs
    /// without a caller argument are sent with this caller's credential, because the server may
    /// refuse others.
    pub(crate) fn who_used(&self, node: &Handle) -> Option<Arc<OpenOwner>> {
        let id = self.hints.find(node)?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.by_id.get(&id).map(Arc::clone)
    }
}

/// Remembers which caller used each object last. Objects whose hashes collide displace each other.
#[derive(Debug)]
struct Hints {
    hasher: RandomState,
    /// The upper half of an object's hash, and the number of the caller.
    places: Box<[AtomicU64]>,
}

impl Hints {
    fn new() -> Self {
        let places = (0..HINTS).map(|_| AtomicU64::new(0)).collect();
        Self { hasher: RandomState::new(), places }
    }

    fn note(&self, node: &Handle, caller: u32) {
        let (place, mark) = self.place(node);
        if let Some(place) = place {
            place.store(mark | u64::from(caller), Ordering::Relaxed);
        }
    }

    fn find(&self, node: &Handle) -> Option<u32> {
        let (place, mark) = self.place(node);
        let found = place?.load(Ordering::Relaxed);
        (found & MARK == mark && found as u32 != 0).then_some(found as u32)
    }

    fn place(&self, node: &Handle) -> (Option<&AtomicU64>, u64) {
        let hash = self.hasher.hash_one(node);
        (self.places.get(hash as usize % HINTS), hash & MARK)
    }
}

/// The upper half of a word.
const MARK: u64 = 0xffff_ffff_0000_0000;

#[cfg(test)]
mod tests {
    use comity_vfs::{Gid, Uid};

    use super::*;

    #[test]
    fn a_caller_has_one_number_and_is_found_by_the_object_it_used() {
        let callers = Callers::new(b"host");
        let cred = |uid| Cred::new(Uid::new(uid), Gid::new(1));
        let node = |byte| Handle::new(&[byte]).unwrap();
        let one = callers.using(&cred(5), &node(1));
        assert_eq!(callers.of(&cred(5)).id, one.id);
        let other = callers.using(&cred(6), &node(2));
        assert_ne!(one.id, other.id);
        assert_eq!(callers.who_used(&node(1)).unwrap().id, one.id);
        assert_eq!(callers.who_used(&node(2)).unwrap().id, other.id);
        assert!(callers.who_used(&node(3)).is_none());
    }
}

//! Objects in delegated directories whose attributes holders have seen under the delegation. A
//! holder that wants it is notified when others change them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use super::Holder;
use crate::directories::Child;
use crate::limits::{CHILDREN_MAX, CHILDREN_OF_ONE_MAX, TICK};
use crate::sync::Mutex;
use crate::table::lock;
use crate::{ClientId, FileKey};

/// A holder, and the name by which it knows an object.
type KnownBy = (Holder, Arc<[u8]>);

/// The children that holders of directories know.
#[derive(Default)]
pub(crate) struct Children {
    known: Mutex<KnownChildren>,
}

#[derive(Default)]
struct KnownChildren {
    holders: HashMap<Holder, HolderChildren, RandomState>,
    /// The holders that know an object, with the name by which they do.
    by_object: HashMap<FileKey, Vec<KnownBy>, RandomState>,
    /// Number of names of all holders.
    count: usize,
    /// The holders that have to be notified, by the time at which that is due.
    due: BTreeSet<(Duration, Holder)>,
}

/// The children that one holder knows.
struct HolderChildren {
    directory: FileKey,
    delay: Duration,
    names: HashMap<Arc<[u8]>, FileKey, RandomState>,
    /// Names whose objects have changed since the holder was notified of them.
    changed: BTreeSet<Arc<[u8]>>,
    /// The time at which the holder has to be notified of the changes.
    due: Option<Duration>,
}

/// There are too many children.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Children {
    /// Begins to note the children of a new holder, which wants to be notified of a change within
    /// `delay`.
    pub(crate) fn begin(&self, holder: Holder, directory: FileKey, delay: Duration) {
        // The shell comes once in a tick, and must not come after the end of the delay.
        let delay = delay.saturating_sub(TICK);
        let (names, changed, due) = (HashMap::default(), BTreeSet::new(), None);
        let new = HolderChildren { directory, delay, names, changed, due };
        lock(&self.known).holders.insert(holder, new);
    }

    /// Forgets the children of a holder; returns whether there was such a holder.
    pub(crate) fn end(&self, holder: Holder) -> bool {
        let mut known = lock(&self.known);
        let Some(ended) = known.holders.remove(&holder) else { return false };
        if let Some(due) = ended.due {
            known.due.remove(&(due, holder));
        }
        known.count -= ended.names.len();
        ended.names.into_iter().for_each(|(name, object)| known.forget(holder, &name, &object));
        true
    }

    /// Notes that a holder knows an object by this name.
    ///
    /// # Errors
    /// [`TooMany`]: it is not noted.
    pub(crate) fn add(&self, holder: Holder, name: &[u8], object: FileKey) -> Result<(), TooMany> {
        let mut known = lock(&self.known);
        let (count, Some(held)) = (known.count, known.holders.get(&holder)) else { return Ok(()) };
        if held.names.get(name) == Some(&object) {
            return Ok(());
        }
        let is_full = count >= CHILDREN_MAX || held.names.len() >= CHILDREN_OF_ONE_MAX;
        if is_full && !held.names.contains_key(name) {
            return Err(TooMany);
        }
        known.remove(holder, name);
        known.insert(holder, name.into(), object);
        Ok(())
    }

    /// Returns the object of a name that a holder knows.
    pub(crate) fn object(&self, holder: Holder, name: &[u8]) -> Option<FileKey> {
        lock(&self.known).holders.get(&holder)?.names.get(name).copied()
    }

    /// Notes that a name is gone, which the holder knows.
    pub(crate) fn remove(&self, holder: Holder, name: &[u8]) {
        lock(&self.known).remove(holder, name);
    }

    /// Notes that an object was changed by a client, which needs no notification itself.
    pub(crate) fn change(&self, now: Duration, object: &FileKey, by: Option<ClientId>) {
        let mut known = lock(&self.known);
        let holders = known.by_object.get(object).cloned().unwrap_or_default();
        for (holder, name) in holders {
            if Some(holder.client) != by {
                known.mark(now, holder, name);
            }
        }
    }

    /// Notes that the object of a name may have been changed before the holder was known.
    pub(crate) fn mark(&self, now: Duration, holder: Holder, name: &[u8]) {
        lock(&self.known).mark(now, holder, name.into());
    }

    /// Returns the holders that have to be notified now, each with its directory. Until
    /// [`Children::take`] has returned all their changes they are not returned again.
    pub(crate) fn due(&self, now: Duration) -> Vec<(Holder, FileKey)> {
        let mut known = lock(&self.known);
        let mut found = Vec::new();
        while let Some((due, holder)) = known.due.first().copied().filter(|(due, _)| *due <= now) {
            known.due.remove(&(due, holder));
            found.extend(known.holders.get(&holder).map(|held| (holder, held.directory)));
        }
        found
    }

    /// Takes changes of which a holder has to be notified now, as long as `has_room` says so of the
    /// next name.
    pub(crate) fn take(
        &self,
        now: Duration,
        holder: Holder,
        mut has_room: impl FnMut(&[u8]) -> bool,
    ) -> Vec<Child> {
        let mut known = lock(&self.known);
        let Some(held) = known.holders.get_mut(&holder) else { return Vec::new() };
        let mut taken = Vec::new();
        if held.due.is_none_or(|due| due > now) {
            return taken;
        }
        while let Some(name) = held.changed.first().filter(|name| has_room(name)).cloned() {
            held.changed.remove(&name);
            taken.extend(held.names.get(&name).map(|object| (Arc::clone(&name), *object)));
        }
        if held.changed.is_empty()
            && let Some(due) = held.due.take()
        {
            known.due.remove(&(due, holder));
        }
        taken
    }

    /// Returns whether a client other than this one knows an object by a directory.
    pub(crate) fn is_known_to_others(&self, object: &FileKey, client: ClientId) -> bool {
        let known = lock(&self.known);
        let holders = known.by_object.get(object);
        holders.is_some_and(|holders| holders.iter().any(|(holder, _)| holder.client != client))
    }

    /// Returns all holders, each with its directory.
    pub(crate) fn holders(&self) -> Vec<(Holder, FileKey)> {
        let known = lock(&self.known);
        known.holders.iter().map(|(holder, held)| (*holder, held.directory)).collect()
    }
}

impl KnownChildren {
    fn insert(&mut self, holder: Holder, name: Arc<[u8]>, object: FileKey) {
        let Some(held) = self.holders.get_mut(&holder) else { return };
        held.names.insert(Arc::clone(&name), object);
        self.by_object.entry(object).or_default().push((holder, name));
        self.count += 1;
    }

    fn remove(&mut self, holder: Holder, name: &[u8]) {
        let Some(held) = self.holders.get_mut(&holder) else { return };
        let Some(object) = held.names.remove(name) else { return };
        held.changed.remove(name);
        self.count -= 1;
        self.forget(holder, name, &object);
    }

    fn forget(&mut self, holder: Holder, name: &[u8], object: &FileKey) {
        let Some(holders) = self.by_object.get_mut(object) else { return };
        holders.retain(|(other, known)| *other != holder || **known != *name);
        if holders.is_empty() {
            self.by_object.remove(object);
        }
    }

    fn mark(&mut self, now: Duration, holder: Holder, name: Arc<[u8]>) {
        let Some(held) = self.holders.get_mut(&holder) else { return };
        held.changed.insert(name);
        if held.due.is_none() {
            let due = now.saturating_add(held.delay);
            held.due = Some(due);
            self.due.insert((due, holder));
        }
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::Handle;

    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn key(number: usize) -> FileKey {
        let handle = Handle::new(&number.to_be_bytes()).unwrap();
        FileKey { volume: 1, export: 1, handle }
    }

    fn holder(client: u64) -> Holder {
        Holder { client: ClientId(client), state: 1 }
    }

    /// A holder whose delay ends five seconds after a change, as the shell sees it.
    fn children() -> Children {
        let children = Children::default();
        children.begin(holder(1), key(0), Duration::from_secs(5) + TICK);
        children
    }

    fn all(children: &Children, now: Duration) -> Vec<FileKey> {
        children.take(now, holder(1), |_| true).into_iter().map(|(_, object)| object).collect()
    }

    #[test]
    fn several_changes_of_a_child_within_the_delay_are_one_that_is_due_at_its_end() {
        let children = children();
        children.add(holder(1), b"a", key(1)).unwrap();
        children.add(holder(1), b"b", key(2)).unwrap();
        children.change(NOW, &key(1), Some(ClientId(2)));
        children.change(NOW + Duration::from_secs(4), &key(1), None);
        children.change(NOW + Duration::from_secs(4), &key(2), None);
        let later = NOW + Duration::from_secs(5);
        assert_eq!(children.due(later - Duration::from_nanos(1)), []);
        assert_eq!(all(&children, later - Duration::from_nanos(1)), []);
        assert_eq!(children.due(later), [(holder(1), key(0))]);
        assert_eq!(children.due(later), [], "it is returned once");
        assert_eq!(all(&children, later), [key(1), key(2)]);
        assert_eq!(all(&children, later), []);
        children.change(later, &key(1), None);
        assert_eq!(children.due(later + Duration::from_secs(5)).len(), 1, "the delay begins again");
    }

    #[test]
    fn changes_without_room_stay_due() {
        let children = children();
        for number in 1..4 {
            children.add(holder(1), &[number], key(number.into())).unwrap();
            children.change(NOW, &key(number.into()), None);
        }
        let later = NOW + Duration::from_secs(5);
        let mut room = 2;
        let taken = children.take(later, holder(1), |_| {
            room -= 1;
            room >= 0
        });
        assert_eq!(taken.len(), 2);
        assert_eq!(all(&children, later), [key(3)]);
    }

    #[test]
    fn a_client_is_not_told_of_its_own_changes_nor_of_objects_whose_names_are_gone() {
        let children = children();
        children.add(holder(1), b"a", key(1)).unwrap();
        children.change(NOW, &key(1), Some(ClientId(1)));
        assert_eq!(children.due(NOW * 2), []);
        children.change(NOW, &key(1), None);
        children.remove(holder(1), b"a");
        assert_eq!(all(&children, NOW * 2), []);
        children.change(NOW, &key(1), None);
        assert!(!children.is_known_to_others(&key(1), ClientId(9)));
        children.add(holder(1), b"a", key(1)).unwrap();
        children.add(holder(1), b"a", key(2)).unwrap();
        assert!(!children.is_known_to_others(&key(1), ClientId(9)), "the name has another object");
        assert!(children.is_known_to_others(&key(2), ClientId(9)));
        assert!(!children.is_known_to_others(&key(2), ClientId(1)));
    }

    #[test]
    fn a_holder_knows_as_many_children_as_the_bound_and_an_ended_one_none() {
        let children = children();
        let name = |number: usize| number.to_be_bytes();
        for number in 0..CHILDREN_OF_ONE_MAX {
            children.add(holder(1), &name(number), key(number)).unwrap();
        }
        assert_eq!(children.add(holder(1), b"one more", key(1)), Err(TooMany));
        assert_eq!(children.add(holder(1), &name(0), key(7)), Ok(()), "a name is replaced");
        children.change(NOW, &key(7), None);
        assert!(children.end(holder(1)));
        assert!(!children.end(holder(1)));
        assert_eq!(children.due(NOW * 2), []);
        let known = lock(&children.known);
        assert_eq!((known.count, known.by_object.len(), known.due.len()), (0, 0, 0));
    }

    #[test]
    fn all_holders_together_know_as_many_children_as_the_bound() {
        let children = Children::default();
        let mut count = 0;
        for client in 1.. {
            children.begin(holder(client), key(0), Duration::ZERO);
            let full = (0..CHILDREN_OF_ONE_MAX).find(|number| {
                children.add(holder(client), &number.to_be_bytes(), key(*number)).is_err()
            });
            count += full.unwrap_or(CHILDREN_OF_ONE_MAX);
            if full.is_some() || count > CHILDREN_MAX {
                break;
            }
            assert!(client < 100, "there is no bound");
            if count == CHILDREN_MAX {
                children.begin(holder(99), key(0), Duration::ZERO);
                assert_eq!(children.add(holder(99), b"one", key(1)), Err(TooMany));
                break;
            }
        }
        assert_eq!(count, CHILDREN_MAX);
    }
}

//! Cached attributes, and whether they may still be used.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_vfs::{Attr, DelegationNumber, Disk, FileType, Handle, NoticedAttributes};
use quick_cache::sync::Cache;

use crate::limits::ATTRIBUTES_MAX;
use crate::options::AttributeTimes;

/// Attributes by object. Times are in milliseconds of a monotonic clock.
pub(crate) struct AttributeCache {
    known: Cache<Handle, KnownAttributes>,
    /// Held while an entry is replaced.
    turn: Mutex<()>,
    numbers: AtomicU64,
    times: AttributeTimes,
}

/// The moment at which a call was sent, as a number that rises. The reply describes the state at
/// that moment or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked(u64);

#[derive(Debug, Clone, Copy)]
struct KnownAttributes {
    attr: Attr<Disk>,
    /// The time at which they were fetched; `None` if they must be fetched again.
    fetched: Option<u64>,
    /// Replies to calls sent before this moment may be older than these attributes.
    asked: Asked,
    /// The time for which they are valid.
    life: u64,
    /// Number of the last change of a directory by another client: names found before it may be
    /// wrong.
    generation: u64,
    /// Number of the last change through this cache: a reply to a call sent before it may be older.
    own: u64,
    /// The delegation under which the attributes were fetched, if any.
    grant: Option<DelegationNumber>,
    /// The change attribute of the version to which the names belong. Under a delegation a reply
    /// brings attributes of changes that have yet to be notified: then it is older than them.
    told: u64,
    /// The change attribute before an own change that was made while notifications of earlier
    /// changes were to come. Names may be newer than what those say.
    overtaken: Option<u64>,
}

/// The version of a directory that a reply describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Changes with each change by another client.
    pub(crate) generation: u64,
    /// Changes with each change through this cache.
    pub(crate) own: u64,
}

/// A change that was noted: the directory's version before it and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) from: Moment,
    pub(crate) to: Moment,
}

impl KnownAttributes {
    const fn moment(&self) -> Moment {
        Moment { generation: self.generation, own: self.own }
    }

    /// Returns whether the names belong to the version of the attributes.
    const fn is_told(&self) -> bool {
        self.told == self.attr.change
    }
}

impl AttributeCache {
    pub(crate) fn new(times: AttributeTimes) -> Self {
        let (turn, numbers) = (Mutex::default(), AtomicU64::new(1));
        Self { known: Cache::new(ATTRIBUTES_MAX), turn, numbers, times }
    }

    /// Returns the moment of a call that is sent now.
    pub(crate) fn ask(&self) -> Asked {
        Asked(self.next())
    }

    /// Returns a number greater than all before.
    fn next(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a reply may be older than the cached attributes.
    pub(crate) fn is_late(&self, node: &Handle, asked: Asked) -> bool {
        self.known.get(node).is_some_and(|known| asked < known.asked)
    }

    /// The attributes, if they are valid: for some time after they were fetched, or under a
    /// delegation.
    pub(crate) fn get(&self, node: &Handle, now: u64, delegated: bool) -> Option<Attr<Disk>> {
        let known = self.known.get(node)?;
        let fetched = known.fetched?;
        (delegated || now.saturating_sub(fetched) < known.life).then_some(known.attr)
    }

    /// The time since the attributes were last known to be those at the server; `None` if they must
    /// be fetched again.
    pub(crate) fn age(&self, node: &Handle, now: u64) -> Option<u64> {
        self.known.get(node)?.fetched.map(|fetched| now.saturating_sub(fetched))
    }

    /// The last known attributes, valid or not.
    pub(crate) fn last(&self, node: &Handle) -> Option<Attr<Disk>> {
        self.known.get(node).map(|known| known.attr)
    }

    /// Notes attributes of a reply, unless they may be older than the cached ones; returns whether
    /// they were noted. If the object is delegated, no other client has changed it.
    pub(crate) fn note(
        &self,
        node: &Handle,
        attr: Attr<Disk>,
        asked: Asked,
        (now, delegated): (u64, bool),
    ) -> bool {
        let _turn = self.turn();
        let is_late = self.is_late(node, asked);
        if !is_late {
            self.put(node, attr, asked, (now, delegated));
        }
        !is_late
    }

    fn put(
        &self,
        node: &Handle,
        attr: Attr<Disk>,
        asked: Asked,
        (now, delegated): (u64, bool),
    ) -> KnownAttributes {
        let known = self.known.get(node);
        let is_same = |known: &KnownAttributes| attr.change == known.attr.change && known.is_told();
        let same = known.filter(|known| delegated || is_same(known));
        let generation = same.map_or_else(|| self.next(), |same| same.generation);
        let life = self.life(same, attr.file_type, now);
        let own = known.map_or(0, |known| known.own);
        let grant = known.and_then(|known| known.grant);
        let kept = same.filter(|_| delegated);
        let new = KnownAttributes {
            attr,
            fetched: Some(now),
            asked,
            life,
            generation,
            own,
            grant,
            told: kept.map_or(attr.change, |known| known.told),
            overtaken: kept.and_then(|known| known.overtaken),
        };
        self.known.insert(*node, new);
        new
    }

    /// Notes attributes that were fetched under a delegation. Names, rights and pages that were
    /// found before are valid under the delegation if the object has not changed since.
    ///
    /// Does nothing if the attributes may be older than the cached ones.
    pub(crate) fn note_granted(
        &self,
        dir: &Handle,
        attr: Attr<Disk>,
        asked: Asked,
        (now, grant): (u64, DelegationNumber),
    ) {
        let _turn = self.turn();
        if !self.is_late(dir, asked) {
            let put = self.put(dir, attr, asked, (now, false));
            self.known.insert(*dir, KnownAttributes { grant: Some(grant), ..put });
        }
    }

    /// The delegation under which the cached data of an object is valid, while the client holds it.
    pub(crate) fn grant(&self, dir: &Handle) -> Option<DelegationNumber> {
        self.known.get(dir)?.grant
    }

    /// The time for which attributes are valid; `same` is the earlier entry if they have not
    /// changed.
    fn life(&self, same: Option<KnownAttributes>, file_type: FileType, now: u64) -> u64 {
        let (least, most) = self.times_of(file_type);
        let Some(known) = same else { return least };
        match known.fetched {
            // The old entry had expired and the object has not changed: double the time.
            Some(then) if now.saturating_sub(then) >= known.life => {
                known.life.saturating_mul(2).clamp(least, most)
            }
            _ => known.life,
        }
    }

    /// Notes a change that was made through this cache. If no other change came between, names stay
    /// valid: returns the version before the change and the one after it.
    pub(crate) fn note_own(
        &self,
        node: &Handle,
        (before, after): (Option<u64>, Option<Attr<Disk>>),
        asked: Asked,
        now: u64,
    ) -> Option<Step> {
        let _turn = self.turn();
        let known = self.known.get(node);
        let Some(after) = after else {
            self.put_expired(node, known);
            return None;
        };
        let is_next =
            |known: &KnownAttributes| before == Some(known.attr.change) && known.is_told();
        let follows = known.filter(is_next);
        let own = self.next();
        let new = match follows {
            Some(known) => {
                KnownAttributes { attr: after, fetched: Some(now), told: after.change, ..known }
            }
            // The reply to a later call has arrived first, so the order of the two changes is
            // unknown.
            None if known.is_some_and(|known| asked < known.asked) => {
                self.put_expired(node, known);
                return None;
            }
            None => {
                let put = self.put(node, after, asked, (now, false));
                let overtaken = before.filter(|_| put.grant.is_some());
                KnownAttributes { generation: self.next(), overtaken, ..put }
            }
        };
        self.known.insert(*node, KnownAttributes { own, asked: self.ask(), ..new });
        follows.map(|known| Step { from: known.moment(), to: Moment { own, ..known.moment() } })
    }

    /// Returns whether a notification may be of a change before an own change that is noted. It
    /// must not change names: they may be newer.
    pub(crate) fn is_overtaken(&self, dir: &Handle, after: Option<u64>) -> bool {
        let _turn = self.turn();
        let known = self.known.get(dir).and_then(|known| Some((known, known.overtaken?)));
        let Some((known, own)) = known else { return false };
        if after.is_some_and(|change| change >= own) {
            self.known.insert(*dir, KnownAttributes { overtaken: None, ..known });
        }
        true
    }

    /// Notes a change of a directory by another client, from a notification. Other names stay
    /// valid. Returns the version before the change and the one after it, or `None` if the
    /// directory is not cached. If the attributes in a late notification are older than the cached
    /// ones, they are fetched again.
    pub(crate) fn note_told(
        &self,
        dir: &Handle,
        after: Option<NoticedAttributes>,
        now: u64,
    ) -> Option<Step> {
        let _turn = self.turn();
        let known = self.known.get(dir)?;
        let after = after.filter(|after| after.change >= known.attr.change);
        let after = after.filter(|_| known.fetched.is_some());
        let attr = after.map_or(
            known.attr,
            |NoticedAttributes { change, size, links, used, atime, ctime, mtime }| Attr {
                change,
                size,
                links,
                used,
                atime,
                ctime,
                mtime,
                ..known.attr
            },
        );
        let (own, asked, fetched) = (self.next(), self.ask(), after.map(|_| now));
        let told = after.map_or(known.told, |after| after.change);
        self.known.insert(*dir, KnownAttributes { attr, own, asked, fetched, told, ..known });
        Some(Step { from: known.moment(), to: Moment { own, ..known.moment() } })
    }

    /// Drops the names of a directory, or the verdicts about an object, as no longer valid.
    pub(crate) fn disown(&self, node: &Handle) {
        let _turn = self.turn();
        if let Some(known) = self.known.get(node) {
            let generation = self.next();
            self.known.insert(*node, KnownAttributes { generation, ..known });
        }
    }

    /// Marks the attributes to be fetched before they are used again.
    pub(crate) fn expire(&self, node: &Handle) {
        let _turn = self.turn();
        self.put_expired(node, self.known.get(node));
    }

    fn put_expired(&self, node: &Handle, known: Option<KnownAttributes>) {
        if let Some(known) = known {
            let (own, asked) = (self.next(), self.ask());
            self.known.insert(*node, KnownAttributes { fetched: None, own, asked, ..known });
        }
    }

    /// The current version of a directory, to which a call sent now belongs.
    pub(crate) fn moment(&self, dir: &Handle) -> Moment {
        let known = self.known.get(dir);
        let (generation, own) = known.map_or((0, 0), |known| (known.generation, known.own));
        Moment { generation, own }
    }

    /// The number of the last change of an object, or of its rights, by another client.
    pub(crate) fn generation(&self, dir: &Handle) -> u64 {
        self.known.get(dir).map_or(0, |known| known.generation)
    }

    const fn times_of(&self, file_type: FileType) -> (u64, u64) {
        match file_type {
            FileType::Directory => self.times.dir,
            _ => self.times.file,
        }
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::{Device, Gid, Mode, Time, Uid};

    use super::*;

    fn attr(change: u64) -> Attr<Disk> {
        Attr {
            file_type: FileType::Regular,
            mode: Mode::new(0o644),
            links: 1,
            uid: Uid::new(0),
            gid: Gid::new(0),
            size: 0,
            used: 0,
            device: Device::default(),
            fsid: 0,
            fileid: 1,
            atime: Time::default(),
            mtime: Time::default(),
            ctime: Time::default(),
            change,
        }
    }

    fn node() -> Handle {
        Handle::new(b"node").unwrap()
    }

    fn note(cache: &AttributeCache, change: u64, now: u64, delegated: bool) {
        assert!(cache.note(&node(), attr(change), cache.ask(), (now, delegated)));
    }

    fn note_own(cache: &AttributeCache, before: u64, after: u64) {
        cache.note_own(&node(), (Some(before), Some(attr(after))), cache.ask(), 0);
    }

    #[test]
    fn attributes_are_valid_for_a_time_that_doubles_while_nothing_changes() {
        let cache = AttributeCache::new(AttributeTimes { file: (10, 40), dir: (0, 0) });
        note(&cache, 1, 100, false);
        assert!(cache.get(&node(), 109, false).is_some());
        assert!(cache.get(&node(), 110, false).is_none());
        assert!(cache.get(&node(), 110, true).is_some(), "a delegated file");
        for (now, life) in [(110, 20), (130, 40), (170, 40)] {
            note(&cache, 1, now, false);
            assert!(cache.get(&node(), now + life - 1, false).is_some());
            assert!(cache.get(&node(), now + life, false).is_none());
        }
        note(&cache, 2, 300, false);
        assert!(cache.get(&node(), 310, false).is_none(), "a change makes it short again");
        cache.expire(&node());
        assert!(cache.get(&node(), 300, true).is_none());
        assert_eq!(cache.last(&node()).unwrap().change, 2);
    }

    #[test]
    fn names_outlive_own_changes_and_not_those_of_others() {
        let cache = AttributeCache::new(AttributeTimes::default());
        note(&cache, 1, 0, false);
        let first = cache.generation(&node());
        note_own(&cache, 1, 2);
        assert_eq!(cache.generation(&node()), first);
        note(&cache, 2, 0, false);
        assert_eq!(cache.generation(&node()), first);
        note_own(&cache, 3, 4);
        assert!(cache.generation(&node()) > first, "another client changed it between 2 and 3");
        let second = cache.generation(&node());
        note(&cache, 5, 0, true);
        assert_eq!(cache.generation(&node()), second, "delegated");
        note(&cache, 6, 0, false);
        assert!(cache.generation(&node()) > second);
    }

    #[test]
    fn an_older_reply_never_replaces_a_newer_one() {
        let cache = AttributeCache::new(AttributeTimes::default());
        let (first, second) = (cache.ask(), cache.ask());
        assert!(cache.note(&node(), attr(2), second, (0, false)));
        assert!(!cache.note(&node(), attr(1), first, (0, false)));
        assert_eq!(cache.last(&node()).unwrap().change, 2);
        let meanwhile = cache.ask();
        note_own(&cache, 2, 3);
        assert!(!cache.note(&node(), attr(2), meanwhile, (0, true)));
        assert_eq!(cache.get(&node(), 0, false).unwrap().change, 3);
    }

    #[test]
    fn after_two_changes_whose_replies_cross_attributes_are_fetched_again() {
        let cache = AttributeCache::new(AttributeTimes::default());
        note(&cache, 1, 0, false);
        let (own, later) = (cache.ask(), cache.ask());
        assert!(cache.note(&node(), attr(3), later, (0, false)));
        cache.note_own(&node(), (Some(1), Some(attr(2))), own, 0);
        assert!(cache.get(&node(), 0, true).is_none(), "the attributes must be fetched");
    }

    fn grant(cache: &AttributeCache, change: u64, number: u64) {
        let grant = DelegationNumber(number);
        cache.note_granted(&node(), attr(change), cache.ask(), (0, grant));
    }

    #[test]
    fn names_of_a_lost_delegation_are_not_those_of_a_change_that_was_not_notified() {
        let cache = AttributeCache::new(AttributeTimes::default());
        grant(&cache, 1, 1);
        let first = cache.generation(&node());
        note(&cache, 2, 0, true);
        assert_eq!(cache.generation(&node()), first, "the notification is to come");
        note(&cache, 2, 0, false);
        let second = cache.generation(&node());
        assert!(second > first, "it never came");
        note(&cache, 3, 0, true);
        grant(&cache, 3, 2);
        assert!(cache.generation(&node()) > second, "it never came to the new delegation");
    }

    #[test]
    fn an_own_change_before_earlier_ones_are_notified_overtakes_their_notifications() {
        let cache = AttributeCache::new(AttributeTimes::default());
        grant(&cache, 1, 1);
        assert!(!cache.is_overtaken(&node(), Some(1)));
        note(&cache, 3, 0, true);
        let first = cache.generation(&node());
        note_own(&cache, 3, 4);
        assert!(cache.generation(&node()) > first);
        assert!(cache.is_overtaken(&node(), Some(2)));
        assert!(cache.is_overtaken(&node(), Some(3)), "the last one");
        assert!(!cache.is_overtaken(&node(), Some(5)));
    }
}

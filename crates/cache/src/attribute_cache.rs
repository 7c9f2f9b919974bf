//! Attributes that are known, and whether they may still be taken for true.

use comity_vfs::{Attr, Disk, FileType, Handle};
use quick_cache::sync::Cache;

use crate::limits::ATTRIBUTES_MAX;
use crate::options::AttributeTimes;

/// Attributes by object. Times are in milliseconds of any clock that does not go back.
pub(crate) struct AttributeCache {
    known: Cache<Handle, KnownAttributes>,
    times: AttributeTimes,
}

#[derive(Debug, Clone, Copy)]
struct KnownAttributes {
    attr: Attr<Disk>,
    /// When they were fetched; `None` if they must be fetched again.
    fetched: Option<u64>,
    /// The time for which they are taken for true.
    life: u64,
    /// Counts changes of a directory by others: names found before one are not true any longer.
    generation: u64,
    /// Counts changes through this cache: an answer that was on its way meanwhile may be older.
    own: u64,
}

/// A moment in the life of a directory, to which an answer belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    generation: u64,
    own: u64,
}

impl AttributeCache {
    pub(crate) fn new(times: AttributeTimes) -> Self {
        Self { known: Cache::new(ATTRIBUTES_MAX), times }
    }

    /// The attributes, if they are true at this moment: a delegation makes them so.
    pub(crate) fn get(&self, node: &Handle, now: u64, delegated: bool) -> Option<Attr<Disk>> {
        let known = self.known.get(node)?;
        let fetched = known.fetched?;
        (delegated || now.saturating_sub(fetched) < known.life).then_some(known.attr)
    }

    /// The attributes as they were known last.
    pub(crate) fn last(&self, node: &Handle) -> Option<Attr<Disk>> {
        self.known.get(node).map(|known| known.attr)
    }

    /// Notes attributes that were fetched. While an object is delegated nobody else changes it.
    pub(crate) fn note(&self, node: &Handle, attr: Attr<Disk>, now: u64, delegated: bool) {
        let (least, most) = self.times_of(attr.file_type);
        let known = self.known.get(node);
        let same = known.filter(|known| delegated || known.attr.change == attr.change);
        let life = match same {
            // Asked again after they were too old: nothing has happened for so long.
            Some(known)
                if known.fetched.is_some_and(|then| now.saturating_sub(then) >= known.life) =>
            {
                known.life.saturating_mul(2).clamp(least, most)
            }
            Some(known) => known.life,
            None => least,
        };
        let generation = known.map_or(0, |known| known.generation) + u64::from(same.is_none());
        let (fetched, own) = (Some(now), known.map_or(0, |known| known.own));
        self.known.insert(*node, KnownAttributes { attr, fetched, life, generation, own });
    }

    /// Notes a change that was made through this cache. If nothing came between, names stay true.
    pub(crate) fn note_own(
        &self,
        node: &Handle,
        before: Option<u64>,
        after: Option<Attr<Disk>>,
        now: u64,
    ) {
        let Some(after) = after else { return self.expire(node) };
        let known = self.known.get(node);
        match known.filter(|known| before == Some(known.attr.change)) {
            Some(known) => {
                let fetched = Some(now);
                let own = known.own + 1;
                self.known.insert(*node, KnownAttributes { attr: after, fetched, own, ..known });
            }
            None => {
                self.note(node, after, now, false);
                self.disown(node);
            }
        }
    }

    /// The names of a directory, or the verdicts about an object, are not true any longer.
    pub(crate) fn disown(&self, node: &Handle) {
        if let Some(known) = self.known.get(node) {
            let generation = known.generation + 1;
            self.known.insert(*node, KnownAttributes { generation, ..known });
        }
    }

    /// The attributes must be fetched before they are used again.
    pub(crate) fn expire(&self, node: &Handle) {
        if let Some(known) = self.known.get(node) {
            self.known.insert(*node, KnownAttributes { fetched: None, ..known });
        }
    }

    /// The moment that an answer belongs to which is asked for now.
    pub(crate) fn moment(&self, dir: &Handle) -> Moment {
        let known = self.known.get(dir);
        let (generation, own) = known.map_or((0, 0), |known| (known.generation, known.own));
        Moment { generation, own }
    }

    /// The number of times that others have changed an object, or its rights were changed.
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

    #[test]
    fn attributes_are_true_for_a_time_that_doubles_while_nothing_changes() {
        let cache = AttributeCache::new(AttributeTimes { file: (10, 40), dir: (0, 0) });
        cache.note(&node(), attr(1), 100, false);
        assert!(cache.get(&node(), 109, false).is_some());
        assert!(cache.get(&node(), 110, false).is_none());
        assert!(cache.get(&node(), 110, true).is_some(), "a delegated file");
        for (now, life) in [(110, 20), (130, 40), (170, 40)] {
            cache.note(&node(), attr(1), now, false);
            assert!(cache.get(&node(), now + life - 1, false).is_some());
            assert!(cache.get(&node(), now + life, false).is_none());
        }
        cache.note(&node(), attr(2), 300, false);
        assert!(cache.get(&node(), 310, false).is_none(), "a change makes it short again");
        cache.expire(&node());
        assert!(cache.get(&node(), 300, true).is_none());
        assert_eq!(cache.last(&node()).unwrap().change, 2);
    }

    #[test]
    fn names_outlive_own_changes_and_not_those_of_others() {
        let cache = AttributeCache::new(AttributeTimes::default());
        cache.note(&node(), attr(1), 0, false);
        let first = cache.generation(&node());
        cache.note_own(&node(), Some(1), Some(attr(2)), 0);
        assert_eq!(cache.generation(&node()), first);
        cache.note(&node(), attr(2), 0, false);
        assert_eq!(cache.generation(&node()), first);
        cache.note_own(&node(), Some(3), Some(attr(4)), 0);
        assert!(cache.generation(&node()) > first, "another's change came between 2 and 3");
        let second = cache.generation(&node());
        cache.note(&node(), attr(5), 0, true);
        assert_eq!(cache.generation(&node()), second, "delegated");
        cache.note(&node(), attr(6), 0, false);
        assert!(cache.generation(&node()) > second);
    }
}

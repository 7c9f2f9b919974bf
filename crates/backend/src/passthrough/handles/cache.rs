use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{FileType, Handle, Status};

use super::descriptors::Share;
use super::ghost_cache::GhostCache;
use super::node::{Ledger, Node};
use crate::passthrough::data::sync_errors::SyncErrors;
use crate::passthrough::limits::{CACHE_SHARDS, COMMITS_AT_ONCE, LARGE_SWEPT_MAX, SMALL_SWEPT_MAX};

/// The objects in use, bounded by their descriptors.
///
/// Each shard is a queue with a second chance: what was used since it last came to the front goes
/// to the back again. A node that somebody holds is never evicted.
#[derive(Debug)]
pub(crate) struct Cache {
    shards: Box<[Mutex<Shard>]>,
    ledger: Arc<Ledger>,
    ghosts: GhostCache,
    /// The shard that is evicted from next.
    turn: AtomicUsize,
    /// The shard that is searched next for files that were removed.
    swept: AtomicUsize,
    /// The same for large files.
    swept_large: AtomicUsize,
    /// Time, counted in objects that were taken in or listed.
    clock: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    nodes: HashMap<Handle, Slot, BuildHasherDefault<HandleHasher>>,
    /// Handles in the order in which they are looked at, with the serial number of their slot.
    queue: VecDeque<(Handle, u64)>,
}

#[derive(Debug)]
struct Slot {
    node: Arc<Node>,
    serial: u64,
}

impl Cache {
    /// A cache whose nodes keep to about `descriptors`.
    pub(crate) fn new(descriptors: Share) -> Self {
        let ghosts = GhostCache::new(descriptors.most());
        Self {
            shards: (0..CACHE_SHARDS).map(|_| Mutex::default()).collect(),
            ledger: Arc::new(Ledger { descriptors, failures: SyncErrors::default() }),
            ghosts,
            turn: AtomicUsize::new(0),
            swept: AtomicUsize::new(0),
            swept_large: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
        }
    }

    /// Returns the ledger of its nodes.
    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    fn descriptors(&self) -> usize {
        self.ledger.descriptors.open()
    }

    /// The node of a handle, if it is in use.
    pub(crate) fn get(&self, handle: &Handle) -> Option<Arc<Node>> {
        let shard = self.shard(handle);
        let node = Arc::clone(&shard.nodes.get(handle)?.node);
        drop(shard);
        node.object().touch();
        Some(node)
    }

    /// Takes a node in; gives the one that is already there for its handle instead, if there is
    /// one.
    pub(crate) fn insert(&self, node: Node) -> Arc<Node> {
        let handle = node.handle;
        let mut shard = self.shard(&handle);
        if let Some(slot) = shard.nodes.get(&handle) {
            return Arc::clone(&slot.node);
        }
        let node = Arc::new(node);
        let serial = self.clock.fetch_add(1, Ordering::Relaxed);
        shard.nodes.insert(handle, Slot { node: Arc::clone(&node), serial });
        shard.queue.push_back((handle, serial));
        shard.tidy();
        drop(shard);
        self.make_room();
        node
    }

    /// Forgets an object.
    pub(crate) fn remove(&self, handle: &Handle) {
        let slot = self.shard(handle).nodes.remove(handle);
        drop(slot);
    }

    /// Forgets files that have lost their last name: an open descriptor keeps their space. All
    /// large files are looked at, and some of the others, as far as they are not too many: the next
    /// call goes on with the rest.
    pub(crate) fn release_removed(&self) {
        self.look_through(&self.swept_large, LARGE_SWEPT_MAX, |node| node.is_large());
        self.look_through(&self.swept, SMALL_SWEPT_MAX, |node| !node.is_large());
    }

    /// Looks at those files of each shard in turn that are `wanted`, until it has seen `most`.
    fn look_through(&self, turn: &AtomicUsize, most: usize, wanted: impl Fn(&Node) -> bool) {
        let (mut looked, mut files) = (0, Vec::new());
        for _ in 0..self.shards.len() {
            if looked >= most {
                break;
            }
            let turn = turn.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            lock(&self.shards[turn]).files(&wanted, &mut files);
            looked += files.len();
            for node in files.drain(..) {
                match node.stat() {
                    Ok(stat) => node.weigh(&stat),
                    Err(Status::Stale) => self.remove(&node.handle),
                    Err(_) => {}
                }
            }
        }
    }

    /// Forgets all objects but those that `keep` tells.
    pub(crate) fn retain(&self, keep: impl Fn(&Node) -> bool) {
        for shard in &self.shards {
            let gone: Vec<_> = lock(shard).nodes.extract_if(|_, slot| !keep(&slot.node)).collect();
            drop(gone);
        }
    }

    /// Returns whether an object that is asked for should be taken in: there is room for it, or it
    /// was asked for a short while ago too. Otherwise a caller that walks through more objects than
    /// can be open would have all of them opened in vain, and objects in use closed.
    pub(crate) fn should_cache(&self, handle: &Handle) -> bool {
        !self.ledger.descriptors.is_full() || self.ghosts.again(hash(handle))
    }

    /// Announces the number of objects that are about to be listed; returns the time before the
    /// listing.
    pub(crate) fn pass(&self, objects: usize) -> u64 {
        self.clock.fetch_add(objects as u64, Ordering::Relaxed)
    }

    /// Returns whether an object that is listed, not asked for, may be taken in, if such a time has
    /// passed since it was listed before: there is much room, or something that was not used for
    /// longer makes room. One other object is looked at, so that those in use are seen to be in use
    /// as often as all are looked at.
    pub(crate) fn makes_room_for_listed(&self, interval: u64) -> bool {
        if self.ledger.descriptors.is_roomy() {
            return true;
        }
        if interval > self.ledger.descriptors.most() as u64 {
            return false;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.shards.len();
        let idle = lock(&self.shards[turn]).next_idle();
        idle.is_some()
    }

    /// Evicts until the bound is kept, as far as nodes are not held.
    pub(crate) fn make_room(&self) {
        let excess = self.ledger.descriptors.excess();
        if excess > 0 {
            self.relieve(excess);
        }
    }

    /// Evicts nodes until `wanted` descriptors have been given back; tells whether any was.
    pub(crate) fn relieve(&self, wanted: usize) -> bool {
        let before = self.descriptors();
        let target = before.saturating_sub(wanted);
        self.evict(target);
        if self.descriptors() > target && self.commit_some() {
            self.evict(target);
        }
        self.descriptors() < before
    }

    /// Evicts until so many descriptors are left, as far as nodes may go.
    fn evict(&self, target: usize) {
        for _ in 0..self.shards.len() {
            if self.descriptors() <= target {
                break;
            }
            // The next to give way is another shard, also in the next call: or else one would lose
            // all it has, what is in use among it.
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            while self.descriptors() > target {
                let Some(evicted) = lock(&self.shards[turn]).evict() else { break };
                drop(evicted);
            }
        }
    }

    /// Asks barriers for some nodes that may not go without; tells whether there were any.
    fn commit_some(&self) -> bool {
        let turn = self.turn.load(Ordering::Relaxed);
        let shards = (0..self.shards.len()).map(|at| (turn + at) % self.shards.len());
        let written = shards.flat_map(|shard| lock(&self.shards[shard]).written());
        let some: Vec<_> = written.take(COMMITS_AT_ONCE).collect();
        some.iter().for_each(|node| node.commit_written());
        !some.is_empty()
    }

    fn shard(&self, handle: &Handle) -> MutexGuard<'_, Shard> {
        // The map takes the low and the highest bits.
        lock(&self.shards[(hash(handle) >> 32) as usize % self.shards.len()])
    }
}

impl Shard {
    /// Its regular files that are `wanted`.
    fn files(&self, wanted: impl Fn(&Node) -> bool, into: &mut Vec<Arc<Node>>) {
        let nodes = self.nodes.values().map(|slot| &slot.node);
        let files = nodes.filter(|node| node.kind == FileType::Regular && wanted(node));
        into.extend(files.cloned());
    }

    /// Nodes that nobody holds and that may not go before a barrier.
    fn written(&self) -> Vec<Arc<Node>> {
        let slots = self.nodes.values();
        let written =
            |slot: &&Slot| Arc::strong_count(&slot.node) == 1 && slot.node.barrier.is_written();
        slots.filter(written).map(|slot| Arc::clone(&slot.node)).collect()
    }

    /// Takes out the first node in the queue that may go.
    fn evict(&mut self) -> Option<Slot> {
        (0..2 * self.queue.len()).find_map(|_| self.next_idle())
    }

    /// Takes out the next node in the queue, if it was not used lately, nobody holds it and all its
    /// data is stable; else it goes to the end.
    fn next_idle(&mut self) -> Option<Slot> {
        let (handle, serial) = self.queue.pop_front()?;
        let slot = self.nodes.get(&handle).filter(|slot| slot.serial == serial)?;
        let kept = Arc::strong_count(&slot.node) > 1 || slot.node.barrier.is_written();
        if slot.node.object().was_used() || kept {
            self.queue.push_back((handle, serial));
            return None;
        }
        self.nodes.remove(&handle)
    }

    /// Clears the queue of nodes that were removed, when they make up half of it.
    fn tidy(&mut self) {
        if self.queue.len() > 2 * self.nodes.len() + 16 {
            let nodes = &self.nodes;
            self.queue.retain(|(handle, serial)| {
                nodes.get(handle).is_some_and(|slot| slot.serial == *serial)
            });
        }
    }
}

fn hash(handle: &Handle) -> u64 {
    BuildHasherDefault::<HandleHasher>::default().hash_one(handle)
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hashes handles. They have been signed by the server, so nobody outside chooses them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Instant;

    use comity_vfs::FileType;

    use super::super::descriptors::Descriptors;
    use super::super::node::Use;
    use super::*;
    use crate::passthrough::mounts::mount::Mount;

    /// A node of the folder that counts as a file; its barrier fails, since a device has none.
    fn insert(cache: &Cache, mount: &Arc<Mount>, number: u8) -> Handle {
        let handle = Handle::new(&[0, 0, 0, 1, 0, 0, number]).unwrap();
        let object = File::open("/dev/null").unwrap();
        let node = Node::new(handle, Arc::clone(mount), object, FileType::Regular, cache.ledger());
        let node = cache.insert(node);
        node.keep_data(Use::Write, File::open("/dev/null").unwrap());
        handle
    }

    #[test]
    fn written_data_is_made_stable_before_its_file_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let mount = Arc::new(Mount::open(folder.path()).unwrap());
        let cache = Cache::new(Descriptors::at_most(16).share());
        let (written, clean) = (insert(&cache, &mount, 1), insert(&cache, &mount, 2));
        cache.get(&written).unwrap().barrier.written();
        let failure = |handle| cache.ledger().failures.of(handle, Instant::now());
        assert!(cache.relieve(2));
        assert!(cache.get(&clean).is_none() && cache.get(&written).is_some());
        assert!(failure(&written).is_ok());
        assert!(cache.relieve(2));
        assert!(cache.get(&written).is_none());
        assert!(failure(&written).is_err(), "the failure is remembered");
        assert!(failure(&clean).is_ok());
    }

    #[test]
    fn shards_give_way_in_turn_and_what_is_held_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mount = Arc::new(Mount::open(folder.path()).unwrap());
        let cache = Cache::new(Descriptors::at_most(1_000).share());
        let handles: Vec<_> = (0..200).map(|number| insert(&cache, &mount, number)).collect();
        let held = cache.get(&handles[0]).unwrap();
        assert!(cache.relieve(40));
        assert_eq!(cache.descriptors(), 360);
        let lengths = || cache.shards.iter().map(|shard| lock(shard).nodes.len());
        let (before, full) = (lengths().collect::<Vec<_>>(), 200 / CACHE_SHARDS);
        assert!(cache.relieve(usize::MAX));
        assert!(cache.get(&handles[0]).is_some_and(|node| Arc::ptr_eq(&node, &held)));
        assert_eq!(lengths().sum::<usize>(), 1, "{before:?} of {full}");
        assert!(!cache.relieve(1), "there is nothing more to give");
    }

    #[test]
    fn all_files_are_looked_at_in_turn_whether_they_were_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mount = Arc::new(Mount::open(folder.path()).unwrap());
        let cache = Cache::new(Descriptors::at_most(1000).share());
        for number in 0..200_u8 {
            let path = folder.path().join(number.to_string());
            let (file, handle) = (File::create(&path).unwrap(), Handle::new(&[number]).unwrap());
            let kind = FileType::Regular;
            cache.insert(Node::new(handle, Arc::clone(&mount), file, kind, cache.ledger()));
            if number % 2 == 0 {
                std::fs::remove_file(path).unwrap();
            }
        }
        let look = || cache.look_through(&cache.swept, 1, |_| true);
        look();
        assert!(cache.descriptors() > 150, "not more than one shard");
        (0..CACHE_SHARDS).for_each(|_| look());
        assert_eq!(cache.descriptors(), 100);
    }
}

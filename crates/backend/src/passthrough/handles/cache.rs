use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{FileType, Handle, Status};

use super::descriptors::Share;
use super::ghost_cache::GhostCache;
use super::node::{Ledger, Node};
use crate::passthrough::limits::{CACHE_SHARDS, COMMITS_AT_ONCE, LARGE_SWEPT_MAX, SWEPT_MAX};
use crate::sync_errors::SyncErrors;

/// The cached nodes, bounded by their descriptors.
///
/// Each shard is a queue with a second chance: an object that was used since it was last at the
/// front returns to the back. A node with references is never evicted.
#[derive(Debug)]
pub(crate) struct Cache {
    shards: Box<[Mutex<Shard>]>,
    ledger: Arc<Ledger>,
    ghosts: GhostCache,
    /// The next shard from which a node is evicted.
    turn: AtomicUsize,
    /// The next shard that is searched for removed files.
    swept: AtomicUsize,
    /// The next shard that is searched for large removed files.
    swept_large: AtomicUsize,
    /// The clock, which advances by one for each object that is inserted or listed.
    clock: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    nodes: HashMap<Handle, Slot, BuildHasherDefault<HandleHasher>>,
    /// Handles in the order in which they are examined, with the serial numbers of their slots.
    queue: VecDeque<(Handle, u64)>,
}

#[derive(Debug)]
struct Slot {
    node: Arc<Node>,
    serial: u64,
}

impl Cache {
    /// Makes a cache whose nodes use about `descriptors`.
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

    /// Returns the node of a handle, if it is in the cache.
    pub(crate) fn get(&self, handle: &Handle) -> Option<Arc<Node>> {
        let shard = self.shard(handle);
        let node = Arc::clone(&shard.nodes.get(handle)?.node);
        drop(shard);
        node.object().touch();
        Some(node)
    }

    /// Inserts a node; returns the existing node of its handle instead, if there is one.
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

    /// Removes an object.
    pub(crate) fn remove(&self, handle: &Handle) {
        let slot = self.shard(handle).nodes.remove(handle);
        drop(slot);
    }

    /// Removes files that have lost their last name, because an open descriptor keeps their space.
    /// A bounded number of files is examined, large ones first: the next call continues with the
    /// rest.
    pub(crate) fn release_removed(&self) {
        let large = self.look_through(&self.swept_large, LARGE_SWEPT_MAX, Node::is_large);
        let left = SWEPT_MAX.saturating_sub(large);
        self.look_through(&self.swept, left, |node| !node.is_large());
    }

    /// Examines the `wanted` files of each shard in turn, until `most` were examined; returns the
    /// number of examined files.
    fn look_through(
        &self,
        turn: &AtomicUsize,
        most: usize,
        wanted: impl Fn(&Node) -> bool,
    ) -> usize {
        let (mut looked, mut files) = (0, Vec::new());
        for _ in 0..self.shards.len() {
            if looked >= most {
                break;
            }
            let turn = turn.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            lock(&self.shards[turn]).files(&wanted, &mut files);
            looked += files.len();
            files.drain(..).for_each(|node| self.examine(&node));
        }
        looked
    }

    /// Removes a file if it has lost its last name.
    fn examine(&self, node: &Node) {
        match node.stat() {
            Ok(stat) => node.weigh(&stat),
            Err(Status::Stale) => self.remove(&node.handle),
            Err(_) => {}
        }
    }

    /// Removes all objects except those for which `keep` holds.
    pub(crate) fn retain(&self, keep: impl Fn(&Node) -> bool) {
        for shard in &self.shards {
            let gone: Vec<_> = lock(shard).nodes.extract_if(|_, slot| !keep(&slot.node)).collect();
            drop(gone);
        }
    }

    /// Returns whether an object that was looked up should be inserted: there is room for it, or it
    /// was also looked up a short while ago. Otherwise a caller that walks through more objects
    /// than can be open would evict objects in use.
    pub(crate) fn should_cache(&self, handle: &Handle) -> bool {
        !self.ledger.descriptors.is_full() || self.ghosts.again(hash(handle))
    }

    /// Advances the clock by the number of objects that are about to be listed; returns the time
    /// before the listing.
    pub(crate) fn pass(&self, objects: usize) -> u64 {
        self.clock.fetch_add(objects as u64, Ordering::Relaxed)
    }

    /// Returns whether an object of a listing may be inserted, if `interval` has passed since the
    /// previous listing: there is much room, or an object that was unused for longer is evicted.
    /// One other object is examined, so that objects in use are recognized as often as all are
    /// examined.
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

    /// Evicts nodes without references until the bound is kept.
    pub(crate) fn make_room(&self) {
        let excess = self.ledger.descriptors.excess();
        if excess > 0 {
            self.relieve(excess);
        }
    }

    /// Evicts nodes until `wanted` descriptors were closed; returns whether any was.
    pub(crate) fn relieve(&self, wanted: usize) -> bool {
        let before = self.descriptors();
        let target = before.saturating_sub(wanted);
        self.evict(target);
        if self.descriptors() > target && self.commit_some() {
            self.evict(target);
        }
        self.descriptors() < before
    }

    /// Evicts nodes until at most `target` descriptors are open, as far as nodes can be evicted.
    fn evict(&self, target: usize) {
        for _ in 0..self.shards.len() {
            if self.descriptors() <= target {
                break;
            }
            // Each eviction begins at the next shard, also in the next call. Otherwise one shard
            // would lose all its nodes, even those in use.
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            while self.descriptors() > target {
                let Some(evicted) = lock(&self.shards[turn]).evict() else { break };
                drop(evicted);
            }
        }
    }

    /// Commits some nodes that need a barrier before they are evicted; returns whether there were
    /// any.
    fn commit_some(&self) -> bool {
        let turn = self.turn.load(Ordering::Relaxed);
        let shards = (0..self.shards.len()).map(|at| (turn + at) % self.shards.len());
        let written = shards.flat_map(|shard| lock(&self.shards[shard]).written());
        let some: Vec<_> = written.take(COMMITS_AT_ONCE).collect();
        some.iter().for_each(|node| node.commit_written());
        !some.is_empty()
    }

    fn shard(&self, handle: &Handle) -> MutexGuard<'_, Shard> {
        // The map in a shard uses the low and the highest bits.
        lock(&self.shards[(hash(handle) >> 32) as usize % self.shards.len()])
    }
}

impl Shard {
    /// Lists the regular files of the shard for which `wanted` holds.
    fn files(&self, wanted: impl Fn(&Node) -> bool, into: &mut Vec<Arc<Node>>) {
        let nodes = self.nodes.values().map(|slot| &slot.node);
        let files = nodes.filter(|node| node.kind == FileType::Regular && wanted(node));
        into.extend(files.cloned());
    }

    /// Returns nodes without references that need a barrier before they are evicted.
    fn written(&self) -> Vec<Arc<Node>> {
        let slots = self.nodes.values();
        let written =
            |slot: &&Slot| Arc::strong_count(&slot.node) == 1 && slot.node.barrier.is_written();
        slots.filter(written).map(|slot| Arc::clone(&slot.node)).collect()
    }

    /// Removes and returns the first node in the queue that can be evicted.
    fn evict(&mut self) -> Option<Slot> {
        (0..2 * self.queue.len()).find_map(|_| self.next_idle())
    }

    /// Takes the next node in the queue if it was not used lately, has no other references, and all
    /// its data are stable. Otherwise the node returns to the back.
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

    /// Removes the entries of removed nodes from the queue when they are half of it.
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

/// Hashes handles. The server has signed them, so that no client can choose them.
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
    use std::path::Path;
    use std::time::Instant;

    use comity_vfs::{AsServer, FileType};

    use super::super::descriptors::Descriptors;
    use super::super::node::Use;
    use super::*;
    use crate::passthrough::mounts::mount::Mount;

    /// A node that counts as a regular file. Its barrier fails, because a device has none.
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
        let mount = Arc::new(Mount::open(&AsServer::here().unwrap(), folder.path()).unwrap());
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
        let mount = Arc::new(Mount::open(&AsServer::here().unwrap(), folder.path()).unwrap());
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
        assert!(!cache.relieve(1), "no further node can be evicted");
    }

    /// Puts `files` empty files, each second one removed, into a cache; returns `None` if the
    /// process may not open so many.
    fn half_removed(folder: &Path, files: u32, large: bool) -> Option<Cache> {
        // This raises the limit of open files.
        let _ = Descriptors::of_process();
        let server = AsServer::here().unwrap();
        let mount = Arc::new(Mount::open(&server, folder).unwrap());
        let cache = Cache::new(Descriptors::at_most(2 * files as usize).share());
        for number in 0..files {
            let path = folder.join(number.to_string());
            let (file, handle) =
                (File::create(&path).ok()?, Handle::new(&number.to_be_bytes()).unwrap());
            let kind = FileType::Regular;
            let node = Node::new(handle, Arc::clone(&mount), file, kind, cache.ledger());
            let node = cache.insert(node);
            let mut stat = node.stat().unwrap();
            stat.st_blocks = if large { i64::MAX } else { 0 };
            node.weigh(&stat);
            if number % 2 == 0 {
                std::fs::remove_file(path).unwrap();
            }
        }
        Some(cache)
    }

    #[test]
    fn thousands_of_removed_files_of_any_size_are_released_by_one_call() {
        const FILES: u32 = 9_000;
        for large in [false, true] {
            let folder = tempfile::tempdir_in("/dev/shm").unwrap();
            let Some(cache) = half_removed(folder.path(), FILES, large) else {
                return eprintln!("skipped: the process may not open {FILES} files");
            };
            assert_eq!(cache.descriptors(), FILES as usize);
            cache.release_removed();
            assert_eq!(cache.descriptors(), FILES as usize / 2, "large: {large}");
        }
    }

    #[test]
    fn all_files_are_looked_at_in_turn_whether_they_were_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mount = Arc::new(Mount::open(&AsServer::here().unwrap(), folder.path()).unwrap());
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
        let look = || {
            cache.look_through(&cache.swept, 1, |_| true);
        };
        look();
        assert!(cache.descriptors() > 150, "more than one shard was evicted");
        (0..CACHE_SHARDS).for_each(|_| look());
        assert_eq!(cache.descriptors(), 100);
    }
}

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::Handle;

use super::limits::CACHE_SHARDS;
use super::node::Node;

/// The objects in use, bounded by their descriptors.
///
/// Each shard is a queue with a second chance: what was used since it last came to the front goes
/// to the back again. A node that somebody holds is never evicted.
#[derive(Debug)]
pub(super) struct Cache {
    shards: Box<[Mutex<Shard>]>,
    descriptors: Arc<AtomicUsize>,
    descriptors_max: usize,
    /// Which shard gives way next.
    turn: AtomicUsize,
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
    used: AtomicBool,
    serial: u64,
}

static SERIAL: AtomicU64 = AtomicU64::new(0);

impl Cache {
    /// A cache whose nodes have at most about `descriptors_max` descriptors open.
    pub(super) fn new(descriptors_max: usize) -> Self {
        Self {
            shards: (0..CACHE_SHARDS).map(|_| Mutex::default()).collect(),
            descriptors: Arc::default(),
            descriptors_max,
            turn: AtomicUsize::new(0),
        }
    }

    /// Counts the descriptors of the nodes, held ones that were evicted among them.
    pub(super) fn descriptors(&self) -> &Arc<AtomicUsize> {
        &self.descriptors
    }

    /// The node of a handle, if it is in use.
    pub(super) fn get(&self, handle: &Handle) -> Option<Arc<Node>> {
        let shard = self.shard(handle);
        let slot = shard.nodes.get(handle)?;
        if !slot.used.load(Ordering::Relaxed) {
            slot.used.store(true, Ordering::Relaxed);
        }
        Some(Arc::clone(&slot.node))
    }

    /// Takes a node in; gives the one that is already there for its handle instead, if there is
    /// one.
    pub(super) fn insert(&self, node: Node) -> Arc<Node> {
        let handle = node.handle;
        let mut shard = self.shard(&handle);
        if let Some(slot) = shard.nodes.get(&handle) {
            return Arc::clone(&slot.node);
        }
        let node = Arc::new(node);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let used = AtomicBool::new(false);
        shard.nodes.insert(handle, Slot { node: Arc::clone(&node), used, serial });
        shard.queue.push_back((handle, serial));
        shard.tidy();
        drop(shard);
        self.make_room();
        node
    }

    /// Forgets an object.
    pub(super) fn remove(&self, handle: &Handle) {
        let slot = self.shard(handle).nodes.remove(handle);
        drop(slot);
    }

    /// Forgets all objects but those that `keep` tells.
    pub(super) fn retain(&self, keep: impl Fn(&Node) -> bool) {
        for shard in &self.shards {
            let gone: Vec<_> = lock(shard).nodes.extract_if(|_, slot| !keep(&slot.node)).collect();
            drop(gone);
        }
    }

    /// Evicts until the bound is kept, as far as nodes are not held.
    pub(super) fn make_room(&self) {
        let excess = self.descriptors.load(Ordering::Relaxed).saturating_sub(self.descriptors_max);
        if excess > 0 {
            self.relieve(excess);
        }
    }

    /// Evicts nodes until `wanted` descriptors have been given back; tells whether any was.
    pub(super) fn relieve(&self, wanted: usize) -> bool {
        let before = self.descriptors.load(Ordering::Relaxed);
        let target = before.saturating_sub(wanted);
        for _ in 0..self.shards.len() {
            if self.descriptors.load(Ordering::Relaxed) <= target {
                break;
            }
            // The next to give way is another shard, also in the next call: or else one would lose
            // all it has, what is in use among it.
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            while self.descriptors.load(Ordering::Relaxed) > target {
                let Some(evicted) = lock(&self.shards[turn]).evict() else { break };
                drop(evicted);
            }
        }
        self.descriptors.load(Ordering::Relaxed) < before
    }

    fn shard(&self, handle: &Handle) -> MutexGuard<'_, Shard> {
        let mut hasher = HandleHasher::default();
        std::hash::Hash::hash(handle, &mut hasher);
        // The map takes the low and the highest bits.
        lock(&self.shards[(hasher.finish() >> 32) as usize % self.shards.len()])
    }
}

impl Shard {
    /// Takes out the first node in the queue that was not used lately and that nobody holds.
    fn evict(&mut self) -> Option<Slot> {
        for _ in 0..2 * self.queue.len() {
            let (handle, serial) = self.queue.pop_front()?;
            let Some(slot) = self.nodes.get(&handle).filter(|slot| slot.serial == serial) else {
                continue;
            };
            if slot.used.swap(false, Ordering::Relaxed) || Arc::strong_count(&slot.node) > 1 {
                self.queue.push_back((handle, serial));
                continue;
            }
            return self.nodes.remove(&handle);
        }
        None
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

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hashes handles. They have been signed by the server, so nobody outside chooses them.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct HandleHasher(u64);

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

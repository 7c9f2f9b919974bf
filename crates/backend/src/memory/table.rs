use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use comity_vfs::{Handle, Result, Status};

use super::limits::TABLE_SHARDS;
use super::node::Node;

const HANDLE_BYTES: usize = 24;

/// All objects by number. A handle has the instance's tag, the object's number, and a MAC of both
/// that cannot be guessed. A number is used only once, so that the handle of a removed object is
/// stale for ever.
#[derive(Debug)]
pub(super) struct Table {
    tag: u64,
    secret: RandomState,
    fileid_next: AtomicU64,
    shards: Vec<RwLock<HashMap<u64, Arc<Node>>>>,
}

impl Table {
    pub(super) fn new() -> Self {
        let secret = RandomState::new();
        Self {
            tag: secret.hash_one("tag"),
            secret,
            fileid_next: AtomicU64::new(1),
            shards: (0..TABLE_SHARDS).map(|_| RwLock::default()).collect(),
        }
    }

    /// Returns a number that differs between instances.
    pub(super) fn tag(&self) -> u64 {
        self.tag
    }

    pub(super) fn fileid_next(&self) -> u64 {
        self.fileid_next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn handle(&self, fileid: u64) -> Result<Handle> {
        let mut bytes = [0; HANDLE_BYTES];
        let words = [self.tag, fileid, self.secret.hash_one(fileid)];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        Handle::new(&bytes)
    }

    /// Returns the object of a handle from outside. A handle of another instance is stale, as after
    /// a restart.
    pub(super) fn find(&self, handle: &Handle) -> Result<Arc<Node>> {
        let bytes: [u8; HANDLE_BYTES] = handle.bytes().try_into().map_err(|_| Status::BadHandle)?;
        let [.., a, b, c, d, e, f, g, h] = *bytes.first_chunk::<16>().ok_or(Status::BadHandle)?;
        let fileid = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        if self.handle(fileid)? != *handle {
            return Err(Status::Stale);
        }
        self.get(fileid)
    }

    pub(super) fn get(&self, fileid: u64) -> Result<Arc<Node>> {
        let shard = self.shard(fileid).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(&fileid).cloned().ok_or(Status::Stale)
    }

    pub(super) fn insert(&self, node: Node) -> Arc<Node> {
        let node = Arc::new(node);
        let mut shard = self.shard(node.fileid).write().unwrap_or_else(PoisonError::into_inner);
        shard.insert(node.fileid, Arc::clone(&node));
        node
    }

    pub(super) fn remove(&self, fileid: u64) {
        let mut shard = self.shard(fileid).write().unwrap_or_else(PoisonError::into_inner);
        shard.remove(&fileid);
    }

    fn shard(&self, fileid: u64) -> &RwLock<HashMap<u64, Arc<Node>>> {
        &self.shards[fileid as usize % TABLE_SHARDS]
    }
}

//! The duplicate request cache: a call that must not be done twice is answered from memory when the
//! client, having lost its connection, sends it again (Juszczak, USENIX Winter 1989).

use std::collections::{HashMap, VecDeque};
use std::hash::Hasher;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use siphasher::sip::SipHasher13;

use crate::limits::{REPLAY_ANSWER_BYTES_MAX, REPLAY_DIGEST_BYTES, REPLAY_ENTRIES_MAX};

const SHARDS: usize = 16;

/// By what a repeated call is known: its sender, its number and its bytes. The sender's port is not
/// part of it, since a reconnecting client may come from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplayKey {
    peer: IpAddr,
    xid: u32,
    length: usize,
    digest: u64,
}

impl ReplayKey {
    /// The key of a whole record, xid and header included.
    #[must_use]
    pub fn new(peer: IpAddr, xid: u32, record: &[u8]) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write(record.get(..REPLAY_DIGEST_BYTES).unwrap_or(record));
        Self { peer, xid, length: record.len(), digest: hasher.finish() }
    }
}

enum Entry {
    InProgress,
    Answered(Arc<[u8]>),
}

#[derive(Default)]
struct Shard {
    entries: HashMap<ReplayKey, Entry>,
    /// In order of arrival; the oldest is forgotten first.
    order: VecDeque<ReplayKey>,
}

/// Remembers the last answers; safe to share among threads.
#[derive(Default)]
pub struct ReplayCache {
    shards: [Mutex<Shard>; SHARDS],
}

/// What is known of a call.
pub enum Verdict<'a> {
    /// Nothing: it is to be done, and its answer given to the ticket.
    New(Ticket<'a>),
    /// It is being done right now: its first copy will be answered.
    InProgress,
    /// This was its answer, record mark included.
    Answered(Arc<[u8]>),
}

/// The promise to tell the answer of a call. Dropped without one, the call counts as never seen.
#[must_use]
pub struct Ticket<'a> {
    cache: &'a ReplayCache,
    key: ReplayKey,
    told: bool,
}

impl ReplayCache {
    /// What is known of the call with this key; an unknown one counts as begun from here on.
    pub fn begin(&self, key: ReplayKey) -> Verdict<'_> {
        let mut shard = self.shard(&key);
        match shard.entries.get(&key) {
            Some(Entry::InProgress) => return Verdict::InProgress,
            Some(Entry::Answered(answer)) => return Verdict::Answered(Arc::clone(answer)),
            None => {}
        }
        if shard.order.len() >= REPLAY_ENTRIES_MAX / SHARDS
            && let Some(oldest) = shard.order.pop_front()
        {
            shard.entries.remove(&oldest);
        }
        shard.order.push_back(key);
        shard.entries.insert(key, Entry::InProgress);
        Verdict::New(Ticket { cache: self, key, told: false })
    }

    fn shard(&self, key: &ReplayKey) -> MutexGuard<'_, Shard> {
        let [first, ..] = &self.shards;
        let shard = self.shards.get(key.digest as usize % SHARDS).unwrap_or(first);
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket<'_> {
    /// Remembers the answer.
    pub fn answered(mut self, answer: &[u8]) {
        if answer.len() > REPLAY_ANSWER_BYTES_MAX {
            return;
        }
        self.told = true;
        let mut shard = self.cache.shard(&self.key);
        if let Some(entry) = shard.entries.get_mut(&self.key) {
            *entry = Entry::Answered(answer.into());
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.told {
            let mut shard = self.cache.shard(&self.key);
            shard.entries.remove(&self.key);
            shard.order.retain(|key| *key != self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn key(xid: u32) -> ReplayKey {
        ReplayKey::new(PEER, xid, &xid.to_be_bytes())
    }

    #[test]
    fn a_repeated_call_gets_the_first_answer() {
        let cache = ReplayCache::default();
        let Verdict::New(ticket) = cache.begin(key(1)) else { panic!("not new") };
        assert!(matches!(cache.begin(key(1)), Verdict::InProgress));
        ticket.answered(b"done");
        assert!(matches!(cache.begin(key(1)), Verdict::Answered(a) if *a == *b"done"));
    }

    #[test]
    fn the_same_xid_with_other_bytes_is_another_call() {
        let cache = ReplayCache::default();
        let Verdict::New(ticket) = cache.begin(ReplayKey::new(PEER, 1, b"a")) else { panic!() };
        ticket.answered(b"done");
        assert!(matches!(cache.begin(ReplayKey::new(PEER, 1, b"b")), Verdict::New(_)));
    }

    #[test]
    fn a_call_that_failed_before_its_answer_may_be_done_again() {
        let cache = ReplayCache::default();
        drop(cache.begin(key(1)));
        assert!(matches!(cache.begin(key(1)), Verdict::New(_)));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let cache = ReplayCache::default();
        for xid in 0..2 * REPLAY_ENTRIES_MAX as u32 {
            if let Verdict::New(ticket) = cache.begin(key(xid)) {
                ticket.answered(b"done");
            }
        }
        let kept: usize = cache.shards.iter().map(|s| s.lock().unwrap().entries.len()).sum();
        assert!(kept <= REPLAY_ENTRIES_MAX);
        assert!(matches!(cache.begin(key(0)), Verdict::New(_)));
        let newest = key(2 * REPLAY_ENTRIES_MAX as u32 - 1);
        assert!(matches!(cache.begin(newest), Verdict::Answered(_)));
    }
}

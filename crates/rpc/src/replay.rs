//! The duplicate request cache: a call that must not be done twice is answered from memory when the
//! client, having lost its connection, sends it again (Juszczak, USENIX Winter 1989).

use std::collections::{HashMap, VecDeque};
use std::hash::Hasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use siphasher::sip::SipHasher13;

use crate::limits::{
    REPLAY_ANSWER_BYTES_MAX, REPLAY_BYTES_MAX, REPLAY_DIGEST_BYTES, REPLAY_ENTRIES_MAX,
    REPLAY_SECONDS_MAX,
};

const SHARDS: usize = 16;

/// Most calls of a shard.
const ENTRIES_MAX: usize = REPLAY_ENTRIES_MAX / SHARDS;

/// Most bytes of answers of a shard.
const BYTES_MAX: usize = REPLAY_BYTES_MAX / SHARDS;

/// Calls that are looked at while room is made for one.
const LOOKS_MAX: usize = 64;

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

/// A call that was seen.
struct Entry {
    /// When, in seconds of the cache's own time.
    begun: u32,
    /// What was answered; nothing while it is being done.
    answer: Option<Arc<[u8]>>,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<ReplayKey, Entry>,
    /// In order of arrival; the oldest is forgotten first.
    order: VecDeque<ReplayKey>,
    /// Of all answers.
    bytes: usize,
}

/// Remembers the last answers; safe to share among threads.
///
/// A copy of a call that is being done is not answered: its first copy will be, and if that answer
/// is lost with its connection, the next copy finds it here.
#[derive(Default)]
pub struct ReplayCache {
    shards: [Mutex<Shard>; SHARDS],
    seconds: AtomicU32,
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
            Some(Entry { answer: Some(answer), .. }) => {
                return Verdict::Answered(Arc::clone(answer));
            }
            Some(_) => return Verdict::InProgress,
            None => {}
        }
        let now = self.seconds.load(Ordering::Relaxed);
        shard.forget(now, 1);
        // Where all places are taken by calls that are being done, this one is not remembered.
        let told = shard.order.len() >= ENTRIES_MAX;
        if !told {
            shard.order.push_back(key);
            shard.entries.insert(key, Entry { begun: now, answer: None });
        }
        Verdict::New(Ticket { cache: self, key, told })
    }

    /// Time has come to `seconds`, counted from any beginning: forgets what is too old.
    pub fn tick(&self, seconds: u32) {
        self.seconds.store(seconds, Ordering::Relaxed);
        for shard in &self.shards {
            let mut shard = lock(shard);
            for _ in 0..shard.order.len().div_ceil(LOOKS_MAX) {
                shard.forget(seconds, 0);
            }
        }
    }

    fn shard(&self, key: &ReplayKey) -> MutexGuard<'_, Shard> {
        let [first, ..] = &self.shards;
        let shard = self.shards.get(key.digest as usize % SHARDS).unwrap_or(first);
        lock(shard)
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    /// Forgets answers, the oldest first, that are too old, or until there is room for `wanted`
    /// calls and for the bytes of their answers. Calls that are being done stay.
    fn forget(&mut self, now: u32, wanted: usize) {
        for _ in 0..self.order.len().min(LOOKS_MAX) {
            let Some(key) = self.order.front().copied() else { return };
            let is_full = self.order.len() + wanted > ENTRIES_MAX || self.bytes > BYTES_MAX;
            let entry = self.entries.get(&key);
            let begun = entry.map_or(0, |entry| entry.begun);
            if !is_full && now.saturating_sub(begun) <= REPLAY_SECONDS_MAX {
                return;
            }
            self.order.pop_front();
            match entry {
                Some(Entry { answer: None, .. }) => self.order.push_back(key),
                _ => self.remove(&key),
            }
        }
    }

    fn remove(&mut self, key: &ReplayKey) {
        let answer = self.entries.remove(key).and_then(|entry| entry.answer);
        self.bytes -= answer.map_or(0, |answer| answer.len());
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
            entry.answer = Some(answer.into());
            shard.bytes += answer.len();
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.told {
            let mut shard = self.cache.shard(&self.key);
            shard.remove(&self.key);
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

    #[test]
    fn the_bytes_of_answers_are_bounded() {
        let cache = ReplayCache::default();
        for xid in 0..REPLAY_ENTRIES_MAX as u32 {
            if let Verdict::New(ticket) = cache.begin(key(xid)) {
                ticket.answered(&[0; REPLAY_ANSWER_BYTES_MAX]);
            }
        }
        let shards = || cache.shards.iter().map(lock);
        let counted: usize = shards().map(|shard| shard.bytes).sum();
        assert!(counted <= REPLAY_BYTES_MAX + SHARDS * REPLAY_ANSWER_BYTES_MAX, "{counted}");
        let kept: usize = shards().map(|shard| shard.entries.len()).sum();
        assert_eq!(counted, kept * REPLAY_ANSWER_BYTES_MAX);
        cache.tick(REPLAY_SECONDS_MAX + 1);
        assert!(shards().all(|shard| shard.bytes == 0 && shard.order.is_empty()));
    }

    #[test]
    fn an_answer_is_forgotten_in_time_and_a_call_that_is_being_done_is_not() {
        let cache = ReplayCache::default();
        let Verdict::New(done) = cache.begin(key(1)) else { panic!("not new") };
        let Verdict::New(slow) = cache.begin(key(2)) else { panic!("not new") };
        done.answered(b"done");
        cache.tick(REPLAY_SECONDS_MAX);
        assert!(matches!(cache.begin(key(1)), Verdict::Answered(_)));
        cache.tick(REPLAY_SECONDS_MAX + 1);
        assert!(matches!(cache.begin(key(1)), Verdict::New(_)));
        assert!(matches!(cache.begin(key(2)), Verdict::InProgress));
        slow.answered(b"slow");
        assert!(matches!(cache.begin(key(2)), Verdict::Answered(_)));
    }

    #[test]
    fn calls_that_are_being_done_are_not_pushed_out() {
        let cache = ReplayCache::default();
        let Verdict::New(first) = cache.begin(key(0)) else { panic!("not new") };
        let tickets: Vec<_> = (1..2 * REPLAY_ENTRIES_MAX as u32)
            .filter_map(|xid| match cache.begin(key(xid)) {
                Verdict::New(ticket) => Some(ticket),
                _ => None,
            })
            .collect();
        assert!(matches!(cache.begin(key(0)), Verdict::InProgress));
        let kept: usize = cache.shards.iter().map(|shard| lock(shard).entries.len()).sum();
        assert_eq!(kept, REPLAY_ENTRIES_MAX, "those for which there is no room are not remembered");
        first.answered(b"done");
        drop(tickets);
        assert!(matches!(cache.begin(key(0)), Verdict::Answered(_)));
    }
}

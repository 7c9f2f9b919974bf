//! The duplicate request cache: if a client sends a call again after it has lost its connection,
//! and the call must not be executed twice, the cache has the reply (Juszczak, USENIX Winter 1989).

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
use crate::network_of;

const SHARDS: usize = 16;

/// Most calls of a shard.
const ENTRIES_MAX: usize = REPLAY_ENTRIES_MAX / SHARDS;

/// Most bytes of answers of a shard.
const BYTES_MAX: usize = REPLAY_BYTES_MAX / SHARDS;

/// Most calls that are examined to make room for one.
const LOOKS_MAX: usize = 64;

/// The key of a repeated call: its sender, its xid and its bytes. The sender's port is not
/// included, because a client may reconnect from another port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplayKey {
    peer: IpAddr,
    proof: u64,
    xid: u32,
    length: usize,
    digest: u64,
}

impl ReplayKey {
    /// Makes the key of a whole record, xid and header included.
    #[must_use]
    pub fn new(peer: IpAddr, xid: u32, record: &[u8]) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write(record.get(..REPLAY_DIGEST_BYTES).unwrap_or(record));
        Self { peer, proof: 0, xid, length: record.len(), digest: hasher.finish() }
    }

    /// Adds what the sender has proved to the key ([`crate::Gate::proof_of`]).
    #[must_use]
    pub const fn proved(self, proof: u64) -> Self {
        Self { proof, ..self }
    }

    /// Returns the network to whose share the call counts.
    fn owner(&self) -> IpAddr {
        network_of(self.peer)
    }
}

/// A call that was seen.
struct Entry {
    /// Time of its beginning, in seconds of the cache's own time.
    begun: u32,
    /// The answer; none while the call is being executed.
    answer: Option<Arc<[u8]>>,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<ReplayKey, Entry>,
    /// The share of each network, by its address.
    shares: HashMap<IpAddr, Share>,
    /// Bytes of all answers.
    bytes: usize,
}

/// The calls of one network.
#[derive(Default)]
struct Share {
    /// The calls in order of arrival; the oldest is forgotten first.
    order: VecDeque<ReplayKey>,
    /// Bytes of the answers to these calls.
    bytes: usize,
}

/// Remembers the last answers; threads may share it. If it is full, answers of the peer with the
/// largest share are forgotten, so that no peer can displace those of others.
///
/// A copy of a call that is being executed is not answered: the reply to the first copy will be
/// sent, and if it is lost with its connection, the next copy finds it here.
#[derive(Default)]
pub struct ReplayCache {
    shards: [Mutex<Shard>; SHARDS],
    seconds: AtomicU32,
}

/// The result of a look-up of a call.
pub enum Verdict<'a> {
    /// The call is new: it must be executed, and its answer given to the ticket.
    New(Ticket<'a>),
    /// The first copy of the call is being executed, and its reply will be sent.
    InProgress,
    /// The call was answered before with this reply, record mark included.
    Answered(Arc<[u8]>),
}

/// A call that is being executed, whose answer is still to be stored. If it is dropped without one,
/// the call counts as never seen.
#[must_use]
pub struct Ticket<'a> {
    cache: &'a ReplayCache,
    key: ReplayKey,
    told: bool,
}

impl ReplayCache {
    /// Looks up a call by its key; a call that is not found is entered as begun.
    pub fn begin(&self, key: ReplayKey) -> Verdict<'_> {
        let mut shard = self.shard(&key);
        match shard.entries.get(&key) {
            Some(Entry { answer: Some(answer), .. }) => {
                return Verdict::Answered(Arc::clone(answer));
            }
            Some(_) => return Verdict::InProgress,
            None => {}
        }
        shard.make_room(key.owner());
        // If calls in progress take all entries, this one is not remembered.
        let told = shard.entries.len() >= ENTRIES_MAX;
        if !told {
            let begun = self.seconds.load(Ordering::Relaxed);
            shard.shares.entry(key.owner()).or_default().order.push_back(key);
            shard.entries.insert(key, Entry { begun, answer: None });
        }
        Verdict::New(Ticket { cache: self, key, told })
    }

    /// Sets the time to `seconds`, counted from any beginning, and forgets answers that are too
    /// old.
    pub fn tick(&self, seconds: u32) {
        self.seconds.store(seconds, Ordering::Relaxed);
        for shard in &self.shards {
            lock(shard).forget_before(seconds.saturating_sub(REPLAY_SECONDS_MAX));
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
    /// Forgets answers until there is room for a call of `caller`: the oldest ones of the largest
    /// share. Calls that are being executed stay.
    fn make_room(&mut self, caller: IpAddr) {
        for _ in 0..LOOKS_MAX {
            if self.entries.len() < ENTRIES_MAX && self.bytes <= BYTES_MAX {
                return;
            }
            let Some(owner) = self.largest(caller) else { return };
            let oldest = self.shares.get_mut(&owner).and_then(|share| share.order.pop_front());
            let Some(key) = oldest else { return };
            match self.entries.get(&key) {
                Some(Entry { answer: None, .. }) => self.put_back(key),
                _ => self.remove(&key),
            }
        }
    }

    /// Returns the owner of the largest share of the resource that is short. It is the caller if it
    /// has at least an equal part, so that the others need not be searched.
    fn largest(&self, caller: IpAddr) -> Option<IpAddr> {
        let is_bytes = self.bytes > BYTES_MAX;
        let size = |share: &Share| if is_bytes { share.bytes } else { share.order.len() };
        let all = if is_bytes { self.bytes } else { self.entries.len() };
        let own = self.shares.get(&caller).map_or(0, size);
        if own * self.shares.len() >= all && own > 0 {
            return Some(caller);
        }
        self.shares.iter().max_by_key(|(_, share)| size(share)).map(|(owner, _)| *owner)
    }

    /// Forgets answers of calls that were begun before `seconds`.
    fn forget_before(&mut self, seconds: u32) {
        let owners: Vec<IpAddr> = self.shares.keys().copied().collect();
        for owner in owners {
            let calls = self.shares.get(&owner).map_or(0, |share| share.order.len());
            for _ in 0..calls {
                let share = self.shares.get_mut(&owner);
                let Some(key) = share.and_then(|share| share.order.pop_front()) else { break };
                match self.entries.get(&key) {
                    Some(Entry { answer: None, .. }) => self.put_back(key),
                    Some(Entry { begun, .. }) if *begun >= seconds => {
                        self.shares.entry(owner).or_default().order.push_front(key);
                        break;
                    }
                    _ => self.remove(&key),
                }
            }
        }
    }

    fn put_back(&mut self, key: ReplayKey) {
        self.shares.entry(key.owner()).or_default().order.push_back(key);
    }

    /// Stores the answer of a call that is being executed.
    fn answer(&mut self, key: &ReplayKey, answer: &[u8]) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.answer = Some(answer.into());
        self.bytes += answer.len();
        self.shares.entry(key.owner()).or_default().bytes += answer.len();
    }

    /// Removes a call whose key its peer's order of arrival no longer contains.
    fn remove(&mut self, key: &ReplayKey) {
        let answer = self.entries.remove(key).and_then(|entry| entry.answer);
        let bytes = answer.map_or(0, |answer| answer.len());
        self.bytes -= bytes;
        if let Some(share) = self.shares.get_mut(&key.owner()) {
            share.bytes -= bytes;
            if share.order.is_empty() {
                self.shares.remove(&key.owner());
            }
        }
    }

    /// Removes a call wherever it is in the order: most are near the end.
    fn take_back(&mut self, key: &ReplayKey) {
        if let Some(share) = self.shares.get_mut(&key.owner()) {
            if share.order.back() == Some(key) {
                share.order.pop_back();
            } else {
                share.order.retain(|other| other != key);
            }
        }
        self.remove(key);
    }
}

impl Ticket<'_> {
    /// Remembers the answer.
    pub fn answered(mut self, answer: &[u8]) {
        if answer.len() > REPLAY_ANSWER_BYTES_MAX {
            return;
        }
        self.told = true;
        self.cache.shard(&self.key).answer(&self.key, answer);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.told {
            self.cache.shard(&self.key).take_back(&self.key);
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
    fn the_same_bytes_by_another_key_are_another_call() {
        let cache = ReplayCache::default();
        let Verdict::New(ticket) = cache.begin(key(1).proved(7)) else { panic!("not new") };
        ticket.answered(b"done");
        assert!(matches!(cache.begin(key(1)), Verdict::New(_)));
        assert!(matches!(cache.begin(key(1).proved(8)), Verdict::New(_)));
        assert!(matches!(cache.begin(key(1).proved(7)), Verdict::Answered(_)));
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
        assert!(shards().all(|shard| shard.bytes == 0 && shard.shares.is_empty()));
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

    fn of(last: u8, xid: u32) -> ReplayKey {
        let peer = IpAddr::from([192, 0, 2, last]);
        ReplayKey::new(peer, xid, &xid.to_be_bytes())
    }

    fn remember(cache: &ReplayCache, key: ReplayKey, answer: &[u8]) {
        let Verdict::New(ticket) = cache.begin(key) else { panic!("not new") };
        ticket.answered(answer);
    }

    #[test]
    fn no_peer_pushes_out_what_another_needs() {
        for answer in [&b"done"[..], &[0; REPLAY_ANSWER_BYTES_MAX]] {
            let cache = ReplayCache::default();
            for last in 1..=20 {
                (0..10).for_each(|xid| remember(&cache, of(last, xid), b"kept"));
            }
            for xid in 0..2 * REPLAY_ENTRIES_MAX as u32 {
                remember(&cache, of(99, 1000 + xid), answer);
            }
            // Peers that come later find room at the expense of the peer with the largest share.
            (0..10).for_each(|xid| remember(&cache, of(77, xid), b"kept"));
            for last in (1..=20).chain([77]) {
                for xid in 0..10 {
                    let verdict = cache.begin(of(last, xid));
                    assert!(matches!(verdict, Verdict::Answered(_)), "{last} {xid}");
                }
            }
            let counted: usize = cache.shards.iter().map(|shard| lock(shard).bytes).sum();
            assert!(counted <= REPLAY_BYTES_MAX + SHARDS * REPLAY_ANSWER_BYTES_MAX, "{counted}");
        }
    }

    #[test]
    fn the_addresses_of_one_network_have_one_share() {
        let cache = ReplayCache::default();
        remember(&cache, of(1, 1), b"kept");
        for xid in 0..2 * REPLAY_ENTRIES_MAX as u32 {
            let peer =
                std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, (xid >> 16) as u16, xid as u16);
            remember(&cache, ReplayKey::new(peer.into(), xid, &xid.to_be_bytes()), b"done");
        }
        assert!(matches!(cache.begin(of(1, 1)), Verdict::Answered(_)));
        let shares: usize = cache.shards.iter().map(|shard| lock(shard).shares.len()).sum();
        assert!(shares <= SHARDS + 1, "{shares}");
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

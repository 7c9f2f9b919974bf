//! Counts of grants for the metrics page.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::outcome::Outcome;

/// Number of cache lines over which the hits are spread, so that two connections seldom write the
/// same one.
const LANES: usize = 16;

/// The names of the outcomes of submitted credentials, in the order of [`GrantTally`].
const OUTCOMES: [&str; 9] = [
    "held",
    "held_before",
    "revoked",
    "ended",
    "no_account",
    "not_for_this_key",
    "malformed",
    "no_room",
    "not_stored",
];

/// Statistics about the grants of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantCounts {
    /// Keys that now hold credentials.
    pub keys: u64,
    /// Credentials that keys now hold.
    pub credentials: u64,
    /// Bytes of their texts.
    pub credential_bytes: u64,
    /// Revocations that are now remembered.
    pub revocations: u64,
    /// Objects whose creator is now known.
    pub creations: u64,
    /// Credentials submitted since the server started, by outcome. A submission that was refused as
    /// a whole counts once.
    pub submitted: [(&'static str, u64); 9],
    /// Revocations made since the server started.
    pub revoked: u64,
    /// Decisions since the server started for which credentials were evaluated.
    pub queries: u64,
    /// Decisions since the server started that were found in a cache.
    pub cache_hits: u64,
}

/// The reason why a submission is refused as a whole.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    Malformed,
    NoRoom,
    NotStored,
}

/// A number on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct HitLane(AtomicU64);

/// The counters of a server.
#[derive(Debug, Default)]
pub(crate) struct GrantTally {
    outcomes: [AtomicU64; OUTCOMES.len()],
    revoked: AtomicU64,
    queries: AtomicU64,
    hits: [HitLane; LANES],
    holders: AtomicU64,
}

impl GrantTally {
    pub(crate) fn submitted(&self, outcome: Outcome) {
        self.add_outcome(match outcome {
            Outcome::Held => 0,
            Outcome::Known => 1,
            Outcome::Revoked => 2,
            Outcome::Ended => 3,
            Outcome::NoAccount => 4,
            Outcome::NotYours => 5,
        });
    }

    /// Counts a submission that was refused as a whole.
    pub(crate) fn refused(&self, why: Refusal) {
        self.add_outcome(match why {
            Refusal::Malformed => 6,
            Refusal::NoRoom => 7,
            Refusal::NotStored => 8,
        });
    }

    pub(crate) fn revoked(&self, count: usize) {
        self.revoked.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn query(&self) {
        self.queries.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counter for the hits of the next key.
    pub(crate) fn lane(&self) -> usize {
        self.holders.fetch_add(1, Ordering::Relaxed) as usize % LANES
    }

    pub(crate) fn hit(&self, lane: usize) {
        if let Some(HitLane(hits)) = self.hits.get(lane) {
            hits.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The totals since the server started; the numbers of things held now are 0.
    pub(crate) fn totals(&self) -> GrantCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut outcomes = self.outcomes.iter().map(read);
        GrantCounts {
            keys: 0,
            credentials: 0,
            credential_bytes: 0,
            revocations: 0,
            creations: 0,
            submitted: OUTCOMES.map(|name| (name, outcomes.next().unwrap_or_default())),
            revoked: read(&self.revoked),
            queries: read(&self.queries),
            cache_hits: self.hits.iter().map(|HitLane(hits)| read(hits)).sum(),
        }
    }

    fn add_outcome(&self, place: usize) {
        if let Some(count) = self.outcomes.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

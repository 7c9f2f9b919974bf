//! When programs read directories: the cache requests a delegation at the second read within a
//! minute.

use comity_vfs::Handle;
use quick_cache::sync::Cache;

use crate::limits::{LOOKS_MAX, LOOKS_WITHIN, REFUSED_FIRST, REFUSED_MAX};

/// Reads of directories, by handle. Times are in milliseconds.
pub(crate) struct DirectoryLooks {
    seen: Cache<Handle, Look>,
}

#[derive(Debug, Clone, Copy)]
struct Look {
    last: u64,
    /// The time before which no delegation is requested.
    rests_until: u64,
    /// The pause after the next refusal.
    pause: u64,
}

impl DirectoryLooks {
    pub(crate) fn new() -> Self {
        Self { seen: Cache::new(LOOKS_MAX) }
    }

    /// Notes a read of a directory that the cache cannot answer; returns whether to request a
    /// delegation.
    pub(crate) fn note(&self, dir: &Handle, now: u64) -> bool {
        let before = self.seen.get(dir);
        let first = Look { last: now, rests_until: 0, pause: REFUSED_FIRST };
        let look = before.map_or(first, |look| Look { last: now, ..look });
        self.seen.insert(*dir, look);
        let is_repeated = before.is_some_and(|look| now.saturating_sub(look.last) <= LOOKS_WITHIN);
        is_repeated && now >= look.rests_until
    }

    /// Notes whether a request for a delegation was granted.
    pub(crate) fn note_answer(&self, dir: &Handle, now: u64, is_granted: bool) {
        let Some(look) = self.seen.get(dir) else { return };
        let look = match is_granted {
            true => Look { rests_until: 0, pause: REFUSED_FIRST, ..look },
            false => Look {
                rests_until: now.saturating_add(look.pause),
                pause: look.pause.saturating_mul(2).min(REFUSED_MAX),
                ..look
            },
        };
        self.seen.insert(*dir, look);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> Handle {
        Handle::new(b"dir").unwrap()
    }

    #[test]
    fn the_second_read_within_a_minute_requests_a_delegation() {
        let looks = DirectoryLooks::new();
        for (at, expected) in [(100, false), (70_000, false), (130_000, true), (130_001, true)] {
            assert_eq!(looks.note(&dir(), at), expected, "at {at}");
        }
    }

    #[test]
    fn a_refusal_is_followed_by_a_pause_that_doubles() {
        let looks = DirectoryLooks::new();
        looks.note(&dir(), 0);
        let mut now = 1;
        for pause in [100, 200, 400] {
            assert!(looks.note(&dir(), now));
            looks.note_answer(&dir(), now, false);
            assert!(!looks.note(&dir(), now + pause - 1));
            now += pause;
        }
        looks.note(&dir(), now);
        looks.note_answer(&dir(), now, true);
        assert!(looks.note(&dir(), now), "after a grant there is no pause");
    }
}

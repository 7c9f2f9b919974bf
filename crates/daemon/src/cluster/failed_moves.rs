//! The exports of a drained head that have not moved, and when each is tried again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pause after the first failed move of an export; it doubles with each further one.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Most bytes of a reason that is told to other heads.
const REASON_MAX: usize = 500;

struct FailedMove {
    /// The number of heads that were asked.
    count: u32,
    reason: String,
    next: Instant,
}

/// The exports whose last move has failed.
#[derive(Default)]
pub(super) struct FailedMoves(BTreeMap<PathBuf, FailedMove>);

impl FailedMoves {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets exports that are not here any more.
    pub(super) fn keep(&mut self, is_here: impl Fn(&Path) -> bool) {
        self.0.retain(|path, _| is_here(path));
    }

    /// Returns the export of these that is to be moved next, if one is due: the one with the fewest
    /// failures, as those that never move must not delay others.
    pub(super) fn next<'p>(
        &self,
        here: impl Iterator<Item = &'p PathBuf>,
        now: Instant,
    ) -> Option<&'p PathBuf> {
        let due = here.filter(|path| self.0.get(*path).is_none_or(|failed| failed.next <= now));
        due.min_by_key(|path| self.count(path))
    }

    /// Returns how many heads were asked to take an export.
    pub(super) fn count(&self, path: &Path) -> u32 {
        self.0.get(path).map_or(0, |failed| failed.count)
    }

    /// Returns why each export is here still.
    pub(super) fn reasons(&self) -> BTreeMap<&Path, &str> {
        self.0.iter().map(|(path, failed)| (&**path, &*failed.reason)).collect()
    }

    /// Notes that an export did not move after so many heads were asked; returns whether the reason
    /// is new.
    pub(super) fn note(&mut self, path: PathBuf, (count, reason): (u32, &str)) -> bool {
        let reason = reason.get(..reason.floor_char_boundary(REASON_MAX)).unwrap_or_default();
        let pause = PAUSE.saturating_mul(1 << count.saturating_sub(1).min(8)).min(PAUSE_MAX);
        let failed = FailedMove { count, reason: reason.to_owned(), next: Instant::now() + pause };
        let before = self.0.insert(path, failed);
        before.is_none_or(|before| before.reason != reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_that_does_not_move_is_tried_after_others_and_more_and_more_seldom() {
        let (stuck, other) = (PathBuf::from("/a"), PathBuf::from("/b"));
        let here = || [&stuck, &other].into_iter();
        let mut failed = FailedMoves::default();
        assert_eq!(failed.next(here(), Instant::now()), Some(&stuck));
        assert!(failed.note(stuck.clone(), (1, "it has locks")));
        assert_eq!(failed.next(here(), Instant::now() + PAUSE), Some(&other));
        assert_eq!(failed.next([&stuck].into_iter(), Instant::now()), None);
        for (count, seconds) in [(1, 1), (2, 2), (3, 4), (6, 30), (u32::MAX, 30)] {
            failed.note(stuck.clone(), (count, "it has locks"));
            let after = |seconds: u64| Instant::now() + Duration::from_secs(seconds);
            assert_eq!(failed.next([&stuck].into_iter(), after(seconds - 1)), None);
            assert_eq!(failed.next([&stuck].into_iter(), after(seconds)), Some(&stuck));
        }
        failed.keep(|path| path != stuck);
        assert!(failed.is_empty());
    }

    #[test]
    fn a_reason_is_new_once_and_is_not_long() {
        let mut failed = FailedMoves::default();
        let mut note = |why: &str| failed.note("/a".into(), (1, why));
        assert!(note("x") && !note("x") && note("y"));
        let long = "\u{e4}".repeat(REASON_MAX);
        assert!(note(&long) && !note(&long));
        assert_eq!(failed.reasons()[Path::new("/a")].len(), REASON_MAX);
    }
}

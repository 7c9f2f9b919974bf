use std::time::Duration;

use crate::limits::{DIRECTORY_REST_MAX, DIRECTORY_REST_MIN};

/// Calls that the end of a delegation causes: CB_RECALL, DELEGRETURN, the repeated change, and the
/// next request of the holder.
pub(crate) const CALLS_OF_A_RECALL: u32 = 4;

/// Time in which requests of a client for a directory count as one. A listing takes several.
const VISIT: Duration = Duration::from_millis(100);

/// Weight of the newest value in an average of past ones.
const NEWEST: f64 = 0.25;

/// The requests of a client for a directory without a delegation, and the ends of its delegations.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectoryUse {
    asked: Option<Duration>,
    /// Time between the last two requests.
    pause: Option<Duration>,
    /// Average of the time between requests, in seconds.
    pause_seconds: Option<f64>,
    granted: Option<Duration>,
    rest: Duration,
    rests_until: Duration,
    saved_per_caused: Option<f64>,
}

impl DirectoryUse {
    /// Notes that a client without a delegation of the directory looks into it or asks for it.
    /// Calls that follow at once belong to the same visit.
    pub fn ask(&mut self, now: Duration) {
        if self.asked.is_some_and(|asked| now < asked.saturating_add(VISIT)) {
            return;
        }
        self.pause = self.asked.map(|asked| now.saturating_sub(asked));
        if let Some(pause) = self.pause {
            self.pause_seconds = Some(averaged(self.pause_seconds, pause.as_secs_f64()));
        }
        self.asked = Some(now);
    }

    /// Notes a grant.
    pub fn grant(&mut self, now: Duration) {
        self.granted = Some(now);
    }

    /// Notes the recall of a delegation. The client rests afterwards, each time twice as long
    /// within bounds, unless the delegation has lasted longer than the rest before it.
    pub fn recall(&mut self, now: Duration) {
        let held = self.granted.take().map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let is_short = held <= self.rest;
        self.rest = if is_short { self.rest * 2 } else { Duration::ZERO };
        self.rest = self.rest.clamp(DIRECTORY_REST_MIN, DIRECTORY_REST_MAX);
        self.rests_until = now.saturating_add(self.rest);
        let pause = self.pause_seconds.unwrap_or(f64::INFINITY).max(1e-3);
        let ratio = held.as_secs_f64() / pause / f64::from(CALLS_OF_A_RECALL);
        self.saved_per_caused = Some(averaged(self.saved_per_caused, ratio));
    }

    /// Notes the end of a delegation that was not recalled.
    pub fn end(&mut self) {
        self.granted = None;
    }

    /// Returns the calls that the present delegation has saved so far. The client is taken to have
    /// looked under it as often as before it; none are known to be saved if it has looked once.
    #[must_use]
    pub fn saved(&self, now: Duration) -> u64 {
        let held = self.granted.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let looks = self.pause_seconds.map_or(0.0, |pause| held.as_secs_f64() / pause.max(1e-3));
        looks as u64
    }

    /// Returns the time between the last two requests.
    #[must_use]
    pub const fn pause(&self) -> Option<Duration> {
        self.pause
    }

    /// Returns the rest after the last recall.
    #[must_use]
    pub const fn rest(&self) -> Duration {
        self.rest
    }

    /// Returns the end of that rest.
    #[must_use]
    pub const fn rests_until(&self) -> Duration {
        self.rests_until
    }

    /// Returns the calls that past delegations have saved for each call that their ends have
    /// caused; none before the first end. The client is taken to have asked under a delegation as
    /// often as before it.
    #[must_use]
    pub const fn saved_per_caused(&self) -> Option<f64> {
        self.saved_per_caused
    }
}

fn averaged(past: Option<f64>, newest: f64) -> f64 {
    past.map_or(newest, |past| past + NEWEST * (newest - past))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// A client that has asked for a directory at these times.
    fn asked(times: &[u64]) -> DirectoryUse {
        let mut seen = DirectoryUse::default();
        times.iter().for_each(|&time| seen.ask(at(time)));
        seen
    }

    #[test]
    fn requests_of_one_visit_count_once_and_the_visit_begins_with_the_first() {
        assert_eq!(asked(&[0]).pause(), None);
        assert_eq!(asked(&[0, 99]).pause(), None);
        assert_eq!(asked(&[0, 100]).pause(), Some(at(100)));
        assert_eq!(asked(&[0, 60, 120]).pause(), Some(at(120)), "the second one extends nothing");
    }

    #[test]
    fn the_newest_pause_counts_a_quarter_in_the_average() {
        let mut seen = asked(&[0, 10_000, 12_000]);
        seen.grant(at(12_000));
        assert_eq!(seen.saved(at(12_000)), 0);
        assert_eq!(seen.saved(at(12_000 + 80_000)), 10, "a look each 8 s is expected");
    }

    #[test]
    fn a_recall_compares_the_looks_that_were_saved_with_the_calls_that_it_causes() {
        let mut seen = asked(&[0, 10_000]);
        seen.grant(at(10_000));
        seen.recall(at(90_000));
        assert_eq!(seen.saved_per_caused(), Some(80.0 / 10.0 / 4.0));
        seen.recall(at(90_000));
        assert_eq!(seen.saved_per_caused(), Some(1.5), "no delegation was held the second time");
        let mut unknown = asked(&[0]);
        unknown.grant(at(0));
        unknown.recall(at(90_000));
        assert_eq!(unknown.saved_per_caused(), Some(0.0), "one look shows no rate");
    }

    #[test]
    fn a_delegation_that_lasted_no_longer_than_the_rest_before_it_doubles_the_rest() {
        for (held, rest) in [(10_000, DIRECTORY_REST_MIN * 2), (10_001, DIRECTORY_REST_MIN)] {
            let mut seen = DirectoryUse::default();
            seen.recall(at(0));
            assert_eq!((seen.rest(), seen.rests_until()), (DIRECTORY_REST_MIN, at(10_000)));
            seen.grant(at(20_000));
            seen.recall(at(20_000 + held));
            assert_eq!((seen.rest(), seen.rests_until()), (rest, at(20_000 + held) + rest));
        }
    }

    #[test]
    fn a_delegation_that_was_returned_saves_nothing_more() {
        let mut seen = asked(&[0, 1_000]);
        seen.grant(at(1_000));
        assert_eq!(seen.saved(at(6_000)), 5);
        seen.end();
        assert_eq!(seen.saved(at(6_000)), 0);
    }
}

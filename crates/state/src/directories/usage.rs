use std::time::Duration;

use crate::limits::{DIRECTORY_REST_MAX, DIRECTORY_REST_MIN};

/// Calls that the end of a delegation causes: CB_RECALL, DELEGRETURN, the repeated change, and the
/// next request of the holder.
pub(crate) const CALLS_OF_A_RECALL: u32 = 4;

/// Time in which requests of a client for a directory count as one. A listing takes several.
const VISIT: Duration = Duration::from_millis(100);

/// Weight of the newest value in an average of past ones.
const NEWEST: f64 = 0.25;

/// Calls that a delegation is taken to save, before the end of the first one is known. One that
/// ends at once by chance should not make its directory look useless.
const SAVED_AT_FIRST: f64 = 8.0;

/// The requests of a client for a directory without a delegation, and the ends of its delegations.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectoryUse {
    asked: Option<Duration>,
    /// Time between the last two requests.
    pause: Option<Duration>,
    /// Average of the time between requests, in seconds.
    pause_seconds: Option<f64>,
    /// Calls of the present visit.
    calls: u32,
    /// Average of the calls of a visit.
    calls_per_visit: Option<f64>,
    /// True if the client has, or has had, a delegation since the present visit began. It sends
    /// fewer calls then.
    was_held: bool,
    granted: Option<Duration>,
    /// Delegations since the averages were last renewed.
    grants: u32,
    /// Notifications that the present delegation has caused.
    notifications: u32,
    rest: Duration,
    rests_until: Duration,
    recalled: Option<Duration>,
    /// Averages of the calls that ended delegations have saved and caused.
    saved_and_caused: Option<(f64, f64)>,
}

impl DirectoryUse {
    /// Notes a call of a client that looks into the directory or asks for its delegation. Calls
    /// that follow at once belong to the same visit.
    pub fn ask(&mut self, now: Duration) {
        if self.asked.is_some_and(|asked| now < asked.saturating_add(VISIT)) {
            self.calls = self.calls.saturating_add(1);
            return;
        }
        self.pause = self.asked.map(|asked| now.saturating_sub(asked));
        if let Some(pause) = self.pause.filter(|_| !self.was_held) {
            self.pause_seconds = Some(averaged(self.pause_seconds, pause.as_secs_f64()));
            self.calls_per_visit = Some(averaged(self.calls_per_visit, f64::from(self.calls)));
            self.grants = 0;
        }
        self.was_held = self.granted.is_some();
        (self.asked, self.calls) = (Some(now), 1);
    }

    /// Notes a grant.
    pub fn grant(&mut self, now: Duration) {
        (self.granted, self.was_held, self.notifications) = (Some(now), true, 0);
        self.grants = self.grants.saturating_add(1);
    }

    /// Notes a call that told the client of changes.
    pub fn notify(&mut self) {
        self.notifications = self.notifications.saturating_add(1);
    }

    /// Notes the recall of a delegation. The client rests afterwards, each time twice as long
    /// within bounds, unless the delegation has lasted longer than the rest before it.
    pub fn recall(&mut self, now: Duration) {
        let (saved, caused) = (self.expected(now), CALLS_OF_A_RECALL + self.notifications);
        let before = self.saved_and_caused;
        let before = before.unwrap_or((SAVED_AT_FIRST, f64::from(CALLS_OF_A_RECALL)));
        let newest = (averaged(Some(before.0), saved), averaged(Some(before.1), caused.into()));
        self.saved_and_caused = Some(newest);
        let held = self.granted.take().map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let is_short = held <= self.rest;
        self.rest = if is_short { self.rest * 2 } else { Duration::ZERO };
        self.rest = self.rest.clamp(DIRECTORY_REST_MIN, DIRECTORY_REST_MAX);
        self.rests_until = now.saturating_add(self.rest);
        (self.recalled, self.notifications) = (Some(now), 0);
    }

    /// Notes the end of a delegation that was not recalled.
    pub fn end(&mut self) {
        (self.granted, self.notifications) = (None, 0);
    }

    /// Returns the calls that the present delegation has saved so far. The client is taken to send
    /// as many calls under it as it sent before; none are known to be saved if it has looked once.
    #[must_use]
    pub fn saved(&self, now: Duration) -> u64 {
        self.expected(now) as u64
    }

    fn expected(&self, now: Duration) -> f64 {
        let held = self.granted.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let visits = self.pause_seconds.map_or(0.0, |pause| held.as_secs_f64() / pause.max(1e-3));
        visits * self.calls_per_visit.unwrap_or(0.0)
    }

    /// Returns the notifications that the present delegation has caused.
    #[must_use]
    pub const fn notifications(&self) -> u32 {
        self.notifications
    }

    /// Returns the delegations that were granted since the client was last seen to look twice
    /// without one. How often it looks is known from then.
    #[must_use]
    pub const fn grants(&self) -> u32 {
        self.grants
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

    /// Returns the time of the last recall.
    #[must_use]
    pub const fn recalled(&self) -> Option<Duration> {
        self.recalled
    }

    /// Returns the calls that past delegations have saved for each call that they have caused; none
    /// before the first recall. The client is taken to send as many calls under a delegation as
    /// before it.
    #[must_use]
    pub fn saved_per_caused(&self) -> Option<f64> {
        self.saved_and_caused.map(|(saved, caused)| saved / caused)
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
        assert_eq!(unknown.saved_per_caused(), Some(1.5), "one look shows no rate");
    }

    #[test]
    fn each_call_of_a_visit_counts_but_those_of_a_visit_that_a_grant_cut_short() {
        let mut seen = asked(&[0, 10, 20, 10_000]);
        seen.grant(at(10_000));
        assert_eq!(seen.saved(at(30_000)), 6, "three calls each 10 s");
        seen.recall(at(30_000));
        seen.ask(at(70_000));
        seen.grant(at(70_000));
        assert_eq!(seen.saved(at(90_000)), 6, "looks under a delegation are not seen");
        seen.recall(at(90_000));
        [100_000, 100_010, 110_000].iter().for_each(|&time| seen.ask(at(time)));
        seen.grant(at(110_000));
        assert_eq!(seen.grants(), 1, "the client has looked twice since");
        assert_eq!(seen.saved(at(150_000)), 11, "of which the newest visit counts a quarter");
    }

    #[test]
    fn notifications_are_caused_by_the_delegation_that_they_keep_up_to_date() {
        let mut seen = asked(&[0, 10_000]);
        seen.grant(at(10_000));
        (0..12).for_each(|_| seen.notify());
        assert_eq!(seen.notifications(), 12);
        seen.recall(at(90_000));
        assert_eq!(seen.saved_per_caused(), Some(8.0 / 7.0), "16 count a quarter beside 4");
        seen.grant(at(90_000));
        assert_eq!(seen.notifications(), 0);
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

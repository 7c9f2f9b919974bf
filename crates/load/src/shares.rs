use std::collections::BTreeMap;
use std::time::Duration;

use crate::average::damped;
use crate::limits::SHARES_MAX;

/// Counters of one user of a server since counting began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Calls.
    pub calls: u64,
    /// Bytes that the server received.
    pub received_bytes: u64,
    /// Bytes that the server sent.
    pub sent_bytes: u64,
    /// The time that calls took, in nanoseconds.
    pub service_nanoseconds: u64,
}

/// Calls, bytes, and the time of calls in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Calls a second.
    pub calls: f64,
    /// Bytes a second that the server received.
    pub received_bytes: f64,
    /// Bytes a second that the server sent.
    pub sent_bytes: f64,
    /// Seconds that calls took in a second: the threads that they keep busy.
    pub service: f64,
}

/// The part of one user in the work of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct UserShare<K> {
    /// The user: a client or an export.
    pub key: K,
    /// The rates between the last two samples.
    pub now: Rates,
    /// The averages over a minute.
    pub minute: Rates,
}

/// The parts of all users in the work of a server, from counters that are read from time to time.
#[derive(Debug)]
pub struct Shares<K> {
    read: Option<Duration>,
    users: BTreeMap<K, UserTrend>,
}

#[derive(Debug, Clone, Copy)]
struct UserTrend {
    usage: Usage,
    now: Rates,
    minute: Rates,
}

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self { read: None, users: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Shares<K> {
    /// Adds the counters of all users at the time `at`. Users that are not among them are
    /// forgotten. A counter that is smaller than before was reset.
    pub fn add(&mut self, at: Duration, usages: impl Iterator<Item = (K, Usage)>) {
        let elapsed = self.read.map(|then| at.saturating_sub(then));
        self.read = Some(at);
        let before = std::mem::take(&mut self.users);
        for (key, usage) in usages.take(SHARES_MAX) {
            let user = match (before.get(&key), elapsed) {
                (Some(user), Some(elapsed)) => user.after(usage, elapsed),
                (None, Some(elapsed)) => UserTrend::new(Usage::default()).after(usage, elapsed),
                (_, None) => UserTrend::new(usage),
            };
            self.users.insert(key, user);
        }
    }

    /// Returns up to `count` users, those with most calls over the last minute first.
    #[must_use]
    pub fn busiest(&self, count: usize) -> Vec<UserShare<K>> {
        let share = |(key, user): (&K, &UserTrend)| UserShare {
            key: key.clone(),
            now: user.now,
            minute: user.minute,
        };
        let mut shares: Vec<_> = self.users.iter().map(share).collect();
        shares.sort_by(|one, other| other.minute.calls.total_cmp(&one.minute.calls));
        shares.truncate(count);
        shares
    }

    /// Returns the sum of the rates of all users over the last minute.
    #[must_use]
    pub fn total(&self) -> Rates {
        self.users.values().fold(Rates::default(), |sum, user| Rates {
            calls: sum.calls + user.minute.calls,
            received_bytes: sum.received_bytes + user.minute.received_bytes,
            sent_bytes: sum.sent_bytes + user.minute.sent_bytes,
            service: sum.service + user.minute.service,
        })
    }
}

impl UserTrend {
    fn new(usage: Usage) -> Self {
        Self { usage, now: Rates::default(), minute: Rates::default() }
    }

    fn after(self, usage: Usage, elapsed: Duration) -> Self {
        if elapsed.is_zero() {
            return self;
        }
        let now = usage.since(self.usage).over(elapsed);
        Self { usage, now, minute: self.minute.towards(now, elapsed) }
    }
}

impl Usage {
    fn since(self, before: Self) -> Self {
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        Self {
            calls: since(self.calls, before.calls),
            received_bytes: since(self.received_bytes, before.received_bytes),
            sent_bytes: since(self.sent_bytes, before.sent_bytes),
            service_nanoseconds: since(self.service_nanoseconds, before.service_nanoseconds),
        }
    }

    fn over(self, elapsed: Duration) -> Rates {
        let seconds = elapsed.as_secs_f64();
        Rates {
            calls: self.calls as f64 / seconds,
            received_bytes: self.received_bytes as f64 / seconds,
            sent_bytes: self.sent_bytes as f64 / seconds,
            service: self.service_nanoseconds as f64 / 1e9 / seconds,
        }
    }
}

impl Rates {
    fn towards(self, now: Self, elapsed: Duration) -> Self {
        let towards = |average, sample| damped(average, sample, elapsed, 60.0);
        Self {
            calls: towards(self.calls, now.calls),
            received_bytes: towards(self.received_bytes, now.received_bytes),
            sent_bytes: towards(self.sent_bytes, now.sent_bytes),
            service: towards(self.service, now.service),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(calls: u64) -> Usage {
        Usage {
            calls,
            received_bytes: calls * 100,
            sent_bytes: calls * 1_000,
            service_nanoseconds: calls * 1_000_000,
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_busiest_user_comes_first_with_its_rates() {
        let mut shares = Shares::default();
        shares.add(at(0), [("a", calls(1_000)), ("b", calls(0))].into_iter());
        shares.add(at(2), [("a", calls(1_010)), ("b", calls(600))].into_iter());
        let busiest = shares.busiest(1);
        assert_eq!(busiest.len(), 1);
        assert_eq!((busiest[0].key, busiest[0].now.calls), ("b", 300.0));
        assert_eq!(busiest[0].now.sent_bytes, 300_000.0);
        assert!((busiest[0].now.service - 0.3).abs() < 1e-9, "300 calls of a millisecond");
        let both: f64 = shares.busiest(9).iter().map(|share| share.minute.calls).sum();
        assert!((shares.total().calls - both).abs() < 1e-9);
    }

    #[test]
    fn calls_before_the_first_sample_are_no_rate() {
        let mut shares = Shares::default();
        shares.add(at(100), [("a", calls(1_000_000))].into_iter());
        assert_eq!(shares.busiest(1)[0].now, Rates::default());
    }

    #[test]
    fn a_counter_that_begins_again_counts_from_zero() {
        let mut shares = Shares::default();
        shares.add(at(0), [("a", calls(500))].into_iter());
        shares.add(at(1), [("a", calls(20))].into_iter());
        assert_eq!(shares.busiest(1)[0].now.calls, 20.0);
    }

    #[test]
    fn a_user_that_came_since_counts_and_one_that_left_is_forgotten() {
        let mut shares = Shares::default();
        shares.add(at(0), [("a", calls(5))].into_iter());
        shares.add(at(1), [("b", calls(7))].into_iter());
        let users = shares.busiest(9);
        assert_eq!((users.len(), users[0].key, users[0].now.calls), (1, "b", 7.0));
    }

    #[test]
    fn no_more_users_are_kept_than_the_bound() {
        let mut shares = Shares::default();
        shares.add(at(0), (0..2 * SHARES_MAX).map(|user| (user, calls(1))));
        assert_eq!(shares.busiest(usize::MAX).len(), SHARES_MAX);
    }
}

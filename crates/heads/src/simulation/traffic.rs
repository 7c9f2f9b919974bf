//! The requests to etcd in each second.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Requests, and the work that they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Requests of all kinds.
    pub requests: u64,
    /// Those of them that change something, or may, so that all members agree on each.
    pub writes: u64,
    /// Keys in the answers.
    pub keys_sent: u64,
    /// Keys that etcd looks at, sent or not.
    pub keys_seen: u64,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, more: Self) {
        self.requests += more.requests;
        self.writes += more.writes;
        self.keys_sent += more.keys_sent;
        self.keys_seen += more.keys_seen;
    }
}

impl Traffic {
    /// Returns requests that only read, with the keys of their answers.
    #[must_use]
    pub const fn reads(requests: u64, keys: u64) -> Self {
        Self { requests, writes: 0, keys_sent: keys, keys_seen: keys }
    }

    /// Returns requests of which some change something.
    #[must_use]
    pub const fn mixed(requests: u64, writes: u64) -> Self {
        Self { requests, writes, keys_sent: requests - writes, keys_seen: requests - writes }
    }
}

/// The traffic by the second.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficLog(BTreeMap<u64, Traffic>);

impl TrafficLog {
    /// Adds traffic at a time in milliseconds.
    pub fn add(&mut self, at: u64, traffic: Traffic) {
        *self.0.entry(at / 1000).or_default() += traffic;
    }

    /// Returns the largest of a figure in one second from `begin` until `end`, in milliseconds.
    #[must_use]
    pub fn most(&self, (begin, end): (u64, u64), figure: impl Fn(&Traffic) -> u64) -> u64 {
        let seconds = self.0.range(begin / 1000..=end / 1000);
        seconds.map(|(_, traffic)| figure(traffic)).max().unwrap_or(0)
    }

    /// Returns all traffic from `begin` until `end`, in milliseconds.
    #[must_use]
    pub fn sum(&self, (begin, end): (u64, u64)) -> Traffic {
        let mut sum = Traffic::default();
        self.0.range(begin / 1000..end / 1000).for_each(|(_, traffic)| sum += *traffic);
        sum
    }
}

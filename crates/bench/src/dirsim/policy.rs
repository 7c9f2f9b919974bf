//! The choice of whether a client is delegated a directory that it asks for.

use std::collections::HashMap;

use crate::limits::{RECALL_REST_MICROSECONDS, RECALL_REST_MICROSECONDS_MAX};

/// A client and a directory, by their numbers.
pub type Asker = (u32, u32);

/// Time within which a second call makes `second-ask` grant.
const SECOND_ASK_MICROSECONDS: u64 = 10_000_000;

/// Calls that a delegation causes that is recalled: CB_RECALL, DELEGRETURN, and the change again.
const CALLS_OF_A_RECALL: f64 = 3.0;

/// A policy. A client asks with each call about a directory that it does not hold.
pub trait GrantPolicy {
    /// Returns whether a client that asks now is delegated the directory.
    fn grants(&mut self, now_microseconds: u64, asker: Asker) -> bool;

    /// Notes that a delegation was recalled.
    fn recalled(&mut self, now_microseconds: u64, asker: Asker);
}

/// The policies by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PolicyName {
    /// Nothing is delegated: what stock clients do
    Never,
    /// Everything is delegated, as in the simulation of CITI (2006)
    Always,
    /// A directory that is asked for twice within 10 s; rested after a recall, longer each time
    SecondAsk,
    /// A directory for which more calls are expected to be saved than caused
    Adaptive,
}

impl PolicyName {
    /// A policy that has met nothing yet.
    #[must_use]
    pub fn policy(self) -> Box<dyn GrantPolicy> {
        match self {
            Self::Never => Box::new(Never),
            Self::Always => Box::new(Always),
            Self::SecondAsk => Box::new(SecondAsk::default()),
            Self::Adaptive => Box::new(Adaptive::default()),
        }
    }
}

struct Never;

impl GrantPolicy for Never {
    fn grants(&mut self, _: u64, _: Asker) -> bool {
        false
    }

    fn recalled(&mut self, _: u64, _: Asker) {}
}

struct Always;

impl GrantPolicy for Always {
    fn grants(&mut self, _: u64, _: Asker) -> bool {
        true
    }

    fn recalled(&mut self, _: u64, _: Asker) {}
}

#[derive(Default)]
struct SecondAsk {
    asked: HashMap<Asker, u64>,
    rests: HashMap<Asker, Rest>,
}

/// The time in which nothing is delegated after a recall.
#[derive(Clone, Copy)]
struct Rest {
    until: u64,
    length: u64,
}

impl GrantPolicy for SecondAsk {
    fn grants(&mut self, now: u64, asker: Asker) -> bool {
        let before = self.asked.insert(asker, now);
        let rests = self.rests.get(&asker).is_some_and(|rest| now < rest.until);
        !rests && before.is_some_and(|before| now - before <= SECOND_ASK_MICROSECONDS)
    }

    fn recalled(&mut self, now: u64, asker: Asker) {
        let rest = self.rests.entry(asker).or_insert(Rest { until: 0, length: 0 });
        let is_calm = now.saturating_sub(rest.until) > RECALL_REST_MICROSECONDS_MAX;
        rest.length = match rest.length {
            0 => RECALL_REST_MICROSECONDS,
            _ if is_calm => RECALL_REST_MICROSECONDS,
            length => (2 * length).min(RECALL_REST_MICROSECONDS_MAX),
        };
        rest.until = now + rest.length;
        self.asked.remove(&asker);
    }
}

/// Expects that a client calls as often as it did while it held nothing, and that a delegation
/// lasts as long as the last ones.
#[derive(Default)]
struct Adaptive {
    directories: HashMap<Asker, Experience>,
}

#[derive(Clone, Copy, Default)]
struct Experience {
    /// The time of the last call, and the mean time between calls.
    called: u64,
    pause: f64,
    calls: u32,
    /// The time of the grant, and the mean time until the recall.
    granted: u64,
    held: Option<f64>,
}

/// The part of a mean that the latest value makes.
const WEIGHT: f64 = 0.25;

/// The part by which a short time is believed to have become longer with each refusal.
const FORGIVENESS: f64 = 0.02;

impl GrantPolicy for Adaptive {
    fn grants(&mut self, now: u64, asker: Asker) -> bool {
        let known = self.directories.entry(asker).or_default();
        if known.calls > 0 {
            let pause = (now - known.called) as f64;
            known.pause = if known.calls == 1 { pause } else { mean(known.pause, pause) };
        }
        (known.called, known.calls) = (now, known.calls.saturating_add(1));
        let expected = known.held.map_or(f64::INFINITY, |held| held / known.pause.max(1.0));
        let grants = known.calls > 1 && expected > CALLS_OF_A_RECALL;
        if grants {
            known.granted = now;
        } else if let Some(held) = &mut known.held {
            // A delegation that did not last once may last longer now.
            *held *= 1.0 + FORGIVENESS;
        }
        grants
    }

    fn recalled(&mut self, now: u64, asker: Asker) {
        let known = self.directories.entry(asker).or_default();
        let held = now.saturating_sub(known.granted) as f64;
        known.held = Some(known.held.map_or(held, |before| mean(before, held)));
    }
}

fn mean(before: f64, latest: f64) -> f64 {
    before + WEIGHT * (latest - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;
    const ASKER: Asker = (1, 1);

    #[test]
    fn second_ask_grants_at_the_second_call_within_a_while() {
        let mut policy = SecondAsk::default();
        assert!(!policy.grants(0, ASKER));
        assert!(!policy.grants(0, (2, 1)), "another client has asked once");
        assert!(policy.grants(SECOND, ASKER));
        assert!(!policy.grants(60 * SECOND, ASKER), "the first was too long ago");
    }

    #[test]
    fn second_ask_rests_longer_after_each_recall() {
        let mut policy = SecondAsk::default();
        let mut rests = Vec::new();
        let mut now = 0;
        for _ in 0..3 {
            policy.recalled(now, ASKER);
            let begun = now;
            while !policy.grants(now, ASKER) {
                now += SECOND / 10;
            }
            rests.push((now - begun) / SECOND);
        }
        assert!(rests[0] < rests[1] && rests[1] < rests[2], "{rests:?}");
    }

    #[test]
    fn adaptive_gives_up_what_is_recalled_before_it_saves_anything() {
        let mut policy = Adaptive::default();
        let (mut now, mut grants) = (0, 0);
        // Somebody else changes the directory each time that it is delegated.
        for _ in 0..100 {
            now += SECOND;
            if policy.grants(now, ASKER) {
                grants += 1;
                policy.recalled(now + SECOND / 10, ASKER);
            }
        }
        assert!(grants < 20, "{grants} of 100");
    }
}

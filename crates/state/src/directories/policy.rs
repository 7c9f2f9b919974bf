//! The policies by which a client gets a directory delegation. They are pure: the time is an
//! argument, and all that is known of the past is in [`DirectoryUse`].

use std::fmt::Debug;
use std::time::Duration;

use super::DirectoryUse;
use crate::limits::DIRECTORY_REST_MAX;

/// Time in which a second request for a directory counts as repeated.
const REPEATED_WITHIN: Duration = Duration::from_secs(60);

/// Calls that a delegation must have saved for each call that it has caused. Below one, the
/// delegation costs more than it saves.
const WORTH: f64 = 1.0;

/// Number of rests after which [`Adaptive`] tries a directory again that was not worth it. That is
/// after [`DIRECTORY_REST_MAX`] at the latest.
const RESTS_OF_WORTHLESS: u32 = 9;

/// Number of delegations after which [`Adaptive`] lets a client look twice without one, to learn
/// how often it looks now.
const GRANTS_AS_MEASURED: u32 = 4;

/// Notifications of a delegation for each call that it has saved, above which [`Adaptive`] gives it
/// up.
const NOTIFICATIONS_PER_SAVED: u64 = 2;

/// Fewest notifications after which it does: as many as four recalls cost calls. Few changes of
/// others soon after a grant say nothing.
const NOTIFICATIONS_MIN: u32 = 16;

/// A policy: whether a client that asks for a delegation of a directory gets it.
pub trait DirectoryPolicy: Debug + Send + Sync {
    /// Returns whether to grant a delegation at `now` to a client that has used the directory like
    /// this. The present request is counted in `seen`.
    fn grants(&self, now: Duration, seen: &DirectoryUse) -> bool;

    /// Returns whether a client that is notified of changes keeps its delegation. Otherwise the
    /// next change recalls it.
    fn keeps(&self, _now: Duration, _seen: &DirectoryUse) -> bool {
        true
    }
}

/// Grants no delegations.
#[derive(Debug, Clone, Copy)]
pub struct Never;

impl DirectoryPolicy for Never {
    fn grants(&self, _: Duration, _: &DirectoryUse) -> bool {
        false
    }
}

/// Grants a delegation to each client that asks. The bounds of memory still hold.
#[derive(Debug, Clone, Copy)]
pub struct Always;

impl DirectoryPolicy for Always {
    fn grants(&self, _: Duration, _: &DirectoryUse) -> bool {
        true
    }
}

/// Grants a delegation to a client that asks for a directory into which it has looked, or for which
/// it has asked, within the last minute. After a recall the client waits, longer each time.
#[derive(Debug, Clone, Copy)]
pub struct SecondAsk;

impl DirectoryPolicy for SecondAsk {
    fn grants(&self, now: Duration, seen: &DirectoryUse) -> bool {
        let is_repeated = seen.pause().is_some_and(|pause| pause <= REPEATED_WITHIN);
        is_repeated && now >= seen.rests_until()
    }
}

/// Grants the first delegation like [`SecondAsk`], and later ones by the measure of those before.
/// As long as they have saved more calls than they have caused, the client does not wait. A
/// directory that was not worth it is tried again after a long rest.
#[derive(Debug, Clone, Copy)]
pub struct Adaptive;

impl DirectoryPolicy for Adaptive {
    fn grants(&self, now: Duration, seen: &DirectoryUse) -> bool {
        match seen.saved_per_caused() {
            Some(ratio) if ratio >= WORTH => seen.grants() < GRANTS_AS_MEASURED,
            Some(_) => SecondAsk.grants(now, seen) && has_rested(now, seen),
            None => SecondAsk.grants(now, seen),
        }
    }

    fn keeps(&self, now: Duration, seen: &DirectoryUse) -> bool {
        let notifications = seen.notifications();
        let most = seen.saved(now).saturating_mul(NOTIFICATIONS_PER_SAVED);
        notifications < NOTIFICATIONS_MIN || u64::from(notifications) <= most
    }
}

fn has_rested(now: Duration, seen: &DirectoryUse) -> bool {
    let rest = seen.rest().saturating_mul(RESTS_OF_WORTHLESS).min(DIRECTORY_REST_MAX);
    seen.recalled().is_none_or(|recalled| now >= recalled.saturating_add(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// Asks once a second until the policy grants; returns the time.
    fn granted_after(policy: &dyn DirectoryPolicy, seen: &mut DirectoryUse, from: u64) -> u64 {
        let asked = |at: &u64| {
            seen.ask(seconds(*at));
            policy.grants(seconds(*at), seen)
        };
        let at = (from..from + 100_000).find(asked).expect("it is granted in the end");
        seen.grant(seconds(at));
        at - from
    }

    #[test]
    fn never_and_always_ignore_the_past() {
        let mut seen = DirectoryUse::default();
        seen.ask(seconds(1));
        assert!(!Never.grants(seconds(1), &seen));
        assert!(Always.grants(seconds(1), &seen));
    }

    #[test]
    fn the_second_request_within_a_minute_is_granted() {
        let mut seen = DirectoryUse::default();
        for (at, granted) in [(100, false), (161, false), (221, true), (222, true)] {
            seen.ask(seconds(at));
            assert_eq!(SecondAsk.grants(seconds(at), &seen), granted, "at {at}");
        }
    }

    #[test]
    fn the_rest_after_a_recall_doubles_and_is_bounded() {
        let (mut seen, mut now, mut rests) = (DirectoryUse::default(), 0, Vec::new());
        for _ in 0..12 {
            now += granted_after(&SecondAsk, &mut seen, now);
            seen.recall(seconds(now));
            rests.push(seen.rest().as_secs());
        }
        assert_eq!(&rests[..4], [10, 20, 40, 80]);
        assert_eq!(rests.last(), Some(&3600));
    }

    #[test]
    fn a_delegation_that_lasted_makes_the_next_rest_short() {
        let mut seen = DirectoryUse::default();
        let mut now = granted_after(&SecondAsk, &mut seen, 0);
        for _ in 0..3 {
            seen.recall(seconds(now));
            now += granted_after(&SecondAsk, &mut seen, now);
        }
        assert_eq!(seen.rest(), seconds(40));
        seen.recall(seconds(now + 1000));
        assert_eq!(seen.rest(), seconds(10));
    }

    #[test]
    fn a_delegation_saves_the_lookups_that_its_client_would_have_made() {
        let mut seen = DirectoryUse::default();
        seen.ask(seconds(0));
        seen.grant(seconds(0));
        assert_eq!(seen.saved(seconds(100)), 0, "one lookup of a client proves nothing");
        seen.end();
        (1..=2).for_each(|visit| seen.ask(seconds(10 * visit)));
        seen.grant(seconds(20));
        assert_eq!(seen.saved(seconds(120)), 10);
        seen.end();
        assert_eq!(seen.saved(seconds(200)), 0);
    }

    #[test]
    fn adaptive_rests_longer_if_delegations_cost_more_than_they_save() {
        let waits = |policy: &dyn DirectoryPolicy, held: u64| {
            let (mut seen, mut now) = (DirectoryUse::default(), 0);
            let mut waited = 0;
            for _ in 0..6 {
                waited = granted_after(policy, &mut seen, now);
                now += waited + held;
                seen.recall(seconds(now));
            }
            waited
        };
        assert!(waits(&Adaptive, 0) > 4 * waits(&SecondAsk, 0), "nothing was saved");
        assert!(waits(&SecondAsk, 5000) >= 10, "it rests after each recall");
        assert!(waits(&Adaptive, 5000) <= 1, "much was saved");
    }

    #[test]
    fn adaptive_tries_a_worthless_directory_once_an_hour_at_least() {
        let (mut seen, mut now) = (DirectoryUse::default(), 0);
        let mut waited = 0;
        for _ in 0..20 {
            waited = granted_after(&Adaptive, &mut seen, now);
            now += waited;
            seen.recall(seconds(now));
        }
        assert_eq!(waited, 3600);
    }

    #[test]
    fn adaptive_measures_anew_after_four_delegations() {
        let (mut seen, mut now) = (DirectoryUse::default(), 0);
        let mut waits = Vec::new();
        for _ in 0..11 {
            let waited = granted_after(&Adaptive, &mut seen, now);
            waits.push(waited);
            now += waited + 100;
            seen.recall(seconds(now));
            now += 5;
        }
        assert_eq!(waits, [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0], "a second look is seen");
    }

    #[test]
    fn adaptive_gives_up_a_holder_whose_notifications_cost_clearly_more_than_its_looks_save() {
        let notified = |count: u32| {
            let mut seen = DirectoryUse::default();
            (0..=1).for_each(|visit| seen.ask(seconds(10 * visit)));
            seen.grant(seconds(10));
            (0..count).for_each(|_| seen.notify());
            seen
        };
        for (count, at, kept) in
            [(15, 10, true), (16, 10, false), (20, 110, true), (21, 110, false), (21, 120, true)]
        {
            assert_eq!(Adaptive.keeps(seconds(at), &notified(count)), kept, "{count} {at}");
        }
        assert!(SecondAsk.keeps(seconds(10), &notified(1000)));
    }
}

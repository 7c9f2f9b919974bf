use std::sync::Arc;
use std::time::Duration;

/// A whole record, with its record mark (RFC 5531, 11).
pub(crate) type CallBytes = Arc<Vec<u8>>;

/// First pause before another attempt to connect.
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// Longest pause between two attempts to connect, so a server that is reachable again is noticed
/// within this time.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// One connection: `link` is its number among the parallel connections, and `generation` tells it
/// from earlier connections with the same number. Events of earlier generations are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LinkPlace {
    /// Its number, from 0 on.
    pub(crate) link: usize,
    /// The number of earlier connections that had the same `link`.
    pub(crate) generation: u64,
}

/// An action that the shell must take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkAction {
    /// Make a connection, and report the outcome.
    Connect(LinkPlace),
    /// End a connection.
    Disconnect(LinkPlace),
    /// Send a record over a connection.
    Send(LinkPlace, CallBytes),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkPhase {
    /// Not connected; the next attempt is due at this time.
    Down(Duration),
    /// An attempt to connect is under way.
    Connecting,
    /// Connected.
    Up,
}

/// The state of a connection.
#[derive(Debug)]
pub(super) struct Link {
    place: LinkPlace,
    phase: LinkPhase,
    /// Attempts in a row that failed.
    failures: u32,
    /// Calls that were sent over it and have no reply yet.
    pub(super) unanswered: u32,
    /// The time of the last record received, or of the first call sent after it, while calls have
    /// no reply.
    silent_since: Option<Duration>,
}

impl Link {
    pub(super) const fn new(link: usize) -> Self {
        let place = LinkPlace { link, generation: 0 };
        let phase = LinkPhase::Down(Duration::ZERO);
        Self { place, phase, failures: 0, unanswered: 0, silent_since: None }
    }

    pub(super) const fn place(&self) -> LinkPlace {
        self.place
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == LinkPhase::Up
    }

    /// Returns the action that is due, if one is.
    pub(super) fn poll(&mut self, now: Duration) -> Option<LinkAction> {
        match self.phase {
            LinkPhase::Down(at) if at <= now => {
                self.phase = LinkPhase::Connecting;
                self.place.generation += 1;
                Some(LinkAction::Connect(self.place))
            }
            _ => None,
        }
    }

    /// Notes that the connection was made.
    pub(super) const fn connected(&mut self) {
        self.phase = LinkPhase::Up;
        self.unanswered = 0;
        self.silent_since = None;
    }

    /// Notes that the connection has ended or could not be made. One that has carried replies is
    /// made again at once.
    pub(super) fn ended(&mut self, now: Duration) {
        let worked = self.is_up() && self.failures == 0;
        let pause = if worked { Duration::ZERO } else { self.pause() };
        // Pause before a server that accepts connections and closes them at once is tried again.
        self.failures = self.failures.saturating_add(1);
        self.phase = LinkPhase::Down(now + pause);
        self.unanswered = 0;
        self.silent_since = None;
    }

    fn pause(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(10);
        (RETRY_FIRST * (1 << doublings)).min(RETRY_MAX)
    }

    /// Notes that a call was sent.
    pub(super) fn sent(&mut self, now: Duration) {
        self.unanswered += 1;
        self.silent_since.get_or_insert(now);
    }

    /// Notes that a record was received.
    pub(super) fn heard(&mut self, now: Duration) {
        self.failures = 0;
        self.silent_since = (self.unanswered > 0).then_some(now);
    }

    /// Notes that a sent call got its reply, or that its caller gave up.
    pub(super) fn settled(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
        if self.unanswered == 0 {
            self.silent_since = None;
        }
    }

    /// The time of the next attempt to connect, or the time when the connection counts as dead.
    pub(super) fn deadline(&self, silence_max: Duration) -> Option<Duration> {
        match self.phase {
            LinkPhase::Down(at) => Some(at),
            LinkPhase::Connecting => None,
            LinkPhase::Up => self.silent_since.map(|since| since + silence_max),
        }
    }

    /// Returns whether calls have waited for `silence_max` without a record from the server.
    pub(super) fn is_silent(&self, now: Duration, silence_max: Duration) -> bool {
        self.is_up() && self.silent_since.is_some_and(|since| since + silence_max <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_connection_that_worked_is_made_again_at_once_and_others_after_growing_pauses() {
        let mut link = Link::new(3);
        let first = link.poll(seconds(1));
        assert!(matches!(first, Some(LinkAction::Connect(place)) if place.link == 3));
        link.connected();
        link.heard(seconds(2));
        link.ended(seconds(2));
        assert_eq!(link.deadline(seconds(60)), Some(seconds(2)));
        let mut pauses = Vec::new();
        for now in (100..1000).step_by(100).map(seconds) {
            assert!(link.poll(now).is_some());
            link.ended(now);
            pauses.push((link.deadline(seconds(60)).unwrap() - now).as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
    }

    #[test]
    fn silence_counts_only_while_calls_wait() {
        let mut link = Link::new(0);
        link.poll(seconds(0));
        link.connected();
        assert!(!link.is_silent(seconds(1000), seconds(60)));
        link.sent(seconds(1000));
        link.sent(seconds(1030));
        assert_eq!(link.deadline(seconds(60)), Some(seconds(1060)));
        link.heard(seconds(1050));
        link.settled();
        assert!(!link.is_silent(seconds(1109), seconds(60)));
        assert!(link.is_silent(seconds(1110), seconds(60)));
        link.settled();
        assert_eq!(link.deadline(seconds(60)), None);
    }
}

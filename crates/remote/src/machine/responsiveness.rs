use std::time::Duration;

use super::notice::Notice;

/// Connections are closed after this multiple of the time after which a server counts as not
/// responding.
const SILENCE_FACTOR: u32 = 3;

/// The last reply of the server, by which it counts as responding or not. The log reports each
/// change once.
#[derive(Debug)]
pub(crate) struct Responsiveness {
    patience: Duration,
    heard: Duration,
    is_reported: bool,
}

impl Responsiveness {
    /// A server counts as not responding if a request has waited for `patience`, and no reply has
    /// come for as long.
    pub(crate) const fn new(patience: Duration) -> Self {
        Self { patience, heard: Duration::ZERO, is_reported: false }
    }

    /// Returns the time without a record after which a connection with waiting calls is closed.
    pub(crate) fn silence_max(&self) -> Duration {
        self.patience * SILENCE_FACTOR
    }

    /// Notes a reply; returns a message if the log has reported that the server does not respond.
    #[must_use]
    pub(crate) fn answered(&mut self, now: Duration) -> Option<Notice> {
        self.heard = now;
        std::mem::take(&mut self.is_reported).then_some(Notice::RespondsAgain)
    }

    /// Returns the time of the last reply.
    pub(crate) const fn heard(&self) -> Duration {
        self.heard
    }

    /// Returns the time at which the server will count as not responding. `oldest` is the time
    /// since when the oldest request has waited.
    pub(crate) fn silent_at(&self, oldest: Option<Duration>) -> Option<Duration> {
        let oldest = oldest.filter(|_| !self.is_reported)?;
        Some(oldest.max(self.heard) + self.patience)
    }

    /// Returns the message that the server does not respond, if it counts so since now.
    #[must_use]
    pub(crate) fn check(&mut self, now: Duration, oldest: Option<Duration>) -> Option<Notice> {
        self.silent_at(oldest).filter(|at| *at <= now)?;
        self.is_reported = true;
        Some(Notice::NotResponding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn silence_counts_from_the_last_reply_or_from_the_oldest_request_and_is_reported_once() {
        let mut server = Responsiveness::new(SECOND * 10);
        assert_eq!(server.silent_at(None), None);
        assert_eq!(server.silent_at(Some(SECOND)), Some(SECOND * 11));
        assert!(server.answered(SECOND * 5).is_none());
        assert_eq!(server.silent_at(Some(SECOND)), Some(SECOND * 15));
        assert_eq!(server.silent_at(Some(SECOND * 7)), Some(SECOND * 17));
        assert!(server.check(SECOND * 14, Some(SECOND)).is_none());
        let report = server.check(SECOND * 15, Some(SECOND));
        assert!(matches!(report, Some(Notice::NotResponding)));
        assert!(server.check(SECOND * 99, Some(SECOND)).is_none());
        assert_eq!(server.silent_at(Some(SECOND)), None);
        assert!(matches!(server.answered(SECOND * 99), Some(Notice::RespondsAgain)));
        assert!(server.answered(SECOND * 100).is_none());
        assert_eq!(server.silent_at(Some(SECOND)), Some(SECOND * 110));
    }
}

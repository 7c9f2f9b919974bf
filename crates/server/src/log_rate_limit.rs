use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::LOG_LINES_A_SECOND;

/// Limits the log lines of one kind, so that a peer cannot fill a disk: a few a second are written,
/// the rest is counted, and the next line contains the number.
pub struct LogRateLimit(Mutex<State>);

struct State {
    since: Option<Instant>,
    said: u32,
    suppressed: u64,
}

impl LogRateLimit {
    /// Makes a limit for a `static` next to its log line.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "for statics, which cannot use a default")]
    pub const fn new() -> Self {
        Self(Mutex::new(State { since: None, said: 0, suppressed: 0 }))
    }

    /// Calls `write` with the number of lines suppressed since the last one, unless this second's
    /// lines are used up.
    pub fn say(&self, write: impl FnOnce(u64)) {
        if let Some(suppressed) = self.may_say(Instant::now()) {
            write(suppressed);
        }
    }

    fn may_say(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = state.since.is_none_or(|since| now - since >= Duration::from_secs(1));
        if fresh {
            (state.since, state.said) = (Some(now), 0);
        }
        if state.said >= LOG_LINES_A_SECOND {
            state.suppressed += 1;
            return None;
        }
        state.said += 1;
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let quiet = LogRateLimit::new();
        let start = Instant::now();
        let said = (0..1000).filter(|_| quiet.may_say(start).is_some()).count();
        assert_eq!(said, LOG_LINES_A_SECOND as usize);
        let later = start + Duration::from_secs(2);
        assert_eq!(quiet.may_say(later), Some(1000 - u64::from(LOG_LINES_A_SECOND)));
        assert_eq!(quiet.may_say(later), Some(0));
    }
}

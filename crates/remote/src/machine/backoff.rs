use std::time::Duration;

/// First pause after a server replied DELAY. A recall takes one or two round trips.
const FIRST: Duration = Duration::from_millis(20);
/// Longest pause. A server in its grace period refuses requests for a minute or more.
const MAX: Duration = Duration::from_secs(2);

/// The pause before an operation is retried that was delayed `times` times before. It doubles each
/// time, up to two seconds.
pub(crate) fn pause(times: u32) -> Duration {
    (FIRST * (1 << times.min(10))).min(MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_two_seconds() {
        let pauses: Vec<u128> = (0..9).map(|times| pause(times).as_millis()).collect();
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1280, 2000, 2000]);
        assert_eq!(pause(u32::MAX), MAX);
    }
}

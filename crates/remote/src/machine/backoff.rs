use std::time::Duration;

/// First pause after a server said "later". A recall takes a round trip or two.
const FIRST: Duration = Duration::from_millis(20);
/// Longest pause. A server in its grace period says "later" for a minute and more.
const MAX: Duration = Duration::from_secs(2);

/// The pause before an operation is tried again that was put off so many times before: twice as
/// long each time, up to two seconds.
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

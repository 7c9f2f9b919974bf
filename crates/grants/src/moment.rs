use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A moment in milliseconds since 1970, by the server's clock for rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// A moment after all others, for rights that never end.
    pub const NEVER: Self = Self(u64::MAX);

    /// The begin of a second since 1970.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Whole seconds since 1970.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// The moment this number of milliseconds later.
    #[must_use]
    pub const fn after_milliseconds(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }
}

/// The format of RFC 3339 in UTC and whole seconds, which is the value of the action attribute
/// `now`. Two moments compare as their texts do.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds().min(LAST_SECOND);
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// The error for a text that is not a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a moment is written as 2027-01-31T12:00:00Z")]
pub struct NoMoment;

/// Reads the format that [`Moment`] writes, and no other.
impl FromStr for Moment {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Self, NoMoment> {
        let digits = |at: Range<usize>| text.get(at).and_then(|part| part.parse::<u64>().ok());
        let part = |at: Range<usize>| digits(at).ok_or(NoMoment);
        let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
        let (hour, minute, second) = (part(11..13)?, part(14..16)?, part(17..19)?);
        let days = days_to(year, month, day).ok_or(NoMoment)?;
        let moment = Self::from_seconds(days * 86_400 + hour * 3600 + minute * 60 + second);
        // Texts of other formats would not compare as moments do.
        if moment.to_string() == text { Ok(moment) } else { Err(NoMoment) }
    }
}

/// The number of a day, counted from 1970-01-01.
const fn days_to(year: u64, month: u64, day: u64) -> Option<u64> {
    if month == 0 || month > 12 || day == 0 || day > 31 || year < 1970 {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// The last second of the year 9999. Later texts would not compare as moments do.
const LAST_SECOND: u64 = 253_402_300_799;

/// The date of a day counted from 1970-01-01, in the Gregorian calendar: years are counted from
/// March, so that the leap day is the last one.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + (month <= 2) as u64;
    (year, month, day)
}

/// The clock by which rights end. It is set forward with the system's clock. When that is set back,
/// it continues at its own pace, so a right that has ended stays ended.
#[derive(Debug, Default)]
pub struct RightsClock {
    /// Milliseconds by which the clock is ahead of the monotonic clock.
    ahead: AtomicU64,
}

impl RightsClock {
    /// Makes a clock that shows at least `seen`, the last moment of an earlier run of the server.
    /// `monotonic` is the current time of a monotonic clock in milliseconds.
    #[must_use]
    pub const fn after(seen: Moment, monotonic: u64) -> Self {
        Self { ahead: AtomicU64::new(seen.0.saturating_sub(monotonic)) }
    }

    /// The current moment, from the monotonic clock and the system's clock in milliseconds.
    pub fn now(&self, monotonic: u64, system: u64) -> Moment {
        let (seen, ahead) = (self.ahead.load(Ordering::Relaxed), system.saturating_sub(monotonic));
        // Most calls only read the number, which all threads share.
        let ahead = match ahead > seen {
            true => self.ahead.fetch_max(ahead, Ordering::Relaxed).max(ahead),
            false => seen,
        };
        Moment(monotonic.saturating_add(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_the_format_of_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_764_000_000, "2025-11-24T16:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (u64::MAX / 1000, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Moment::from_seconds(seconds).to_string(), text);
            let read = text.parse::<Moment>().unwrap();
            assert_eq!(read.seconds(), seconds.min(LAST_SECOND));
        }
    }

    #[test]
    fn text_that_is_not_a_moment_is_refused() {
        for text in [
            "",
            "2027-01-31",
            "2027-01-31T12:00:00",
            "2027-01-31T12:00:00+00:00",
            "2027-01-31t12:00:00z",
            "2027-02-30T12:00:00Z",
            "2027-13-01T12:00:00Z",
            "2027-01-31T24:00:00Z",
            "2027-01-31T12:00:60Z",
            "1969-12-31T23:59:59Z",
            "+027-01-31T12:00:00Z",
            "2027-01-31T12:00:00Z ",
        ] {
            assert_eq!(text.parse::<Moment>(), Err(NoMoment), "{text}");
        }
    }

    #[test]
    fn the_clock_is_never_set_back_and_never_stops() {
        let clock = RightsClock::after(Moment(5_000), 100);
        assert_eq!(clock.now(100, 4_000), Moment(5_000));
        assert_eq!(clock.now(200, 4_100), Moment(5_100));
        assert_eq!(clock.now(300, 9_000), Moment(9_000));
        assert_eq!(clock.now(400, 1_000), Moment(9_100));
        assert_eq!(clock.now(1_400, 2_000), Moment(10_100));
    }
}

//! Times in certificates, in seconds since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::der::{GENERALIZED_TIME, UTC_TIME, Value};

/// The current time.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Reads a time of a certificate (RFC 5280, 4.1.2.5): `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`. A time
/// before 1970 becomes 0.
pub(crate) fn read(value: &Value<'_>) -> Option<u64> {
    let text = value.content.strip_suffix(b"Z")?;
    let (year, rest) = match value.tag {
        UTC_TIME => {
            let (year, rest) = number(text, 2)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => number(text, 4)?,
        _ => return None,
    };
    let (month, rest) = number(rest, 2)?;
    let (day, rest) = number(rest, 2)?;
    let (hour, rest) = number(rest, 2)?;
    let (minute, rest) = number(rest, 2)?;
    let (second, rest) = number(rest, 2)?;
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day);
    let fits = fits && hour < 24 && minute < 60 && second < 61 && rest.is_empty();
    let seconds = hour * 3600 + minute * 60 + second;
    fits.then(|| days(year, month, day)).map(|days| days.max(0) as u64 * 86_400 + seconds as u64)
}

fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (digits, rest) = text.split_at_checked(digits)?;
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let fold = |number: i64, digit: &u8| number * 10 + i64::from(digit - b'0');
    is_number.then(|| (digits.iter().fold(0, fold), rest))
}

/// Days from 1970 to a date of the Gregorian calendar. Years are counted from March, so that the
/// leap day is the last one.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(tag: u8, text: &str) -> Option<u64> {
        read(&Value { tag, content: text.as_bytes(), whole: &[] })
    }

    #[test]
    fn both_forms_are_read() {
        assert_eq!(moment(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(moment(UTC_TIME, "000229120000Z"), Some(951_825_600));
        assert_eq!(moment(GENERALIZED_TIME, "20261125000000Z"), Some(1_795_564_800));
        assert_eq!(moment(GENERALIZED_TIME, "99991231235959Z"), Some(253_402_300_799));
        assert_eq!(moment(GENERALIZED_TIME, "19600101000000Z"), Some(0));
    }

    #[test]
    fn text_that_is_not_a_time_is_refused() {
        for text in ["", "Z", "700101000000", "701301000000Z", "7001010000000Z", "70010100-100Z"] {
            assert_eq!(moment(UTC_TIME, text), None, "{text}");
        }
        assert_eq!(moment(GENERALIZED_TIME, "700101000000Z"), None);
        assert_eq!(moment(SEQUENCE_TAG, "700101000000Z"), None);
    }

    const SEQUENCE_TAG: u8 = crate::der::SEQUENCE;
}

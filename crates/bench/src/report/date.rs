//! Moments as text, in UTC.

use jiff::Timestamp;

/// Formats seconds since 1970 as `2026-11-22 01:02 UTC`.
#[must_use]
pub(super) fn text(seconds: u64) -> String {
    let moment = i64::try_from(seconds).ok().and_then(|each| Timestamp::from_second(each).ok());
    let moment = moment.unwrap_or(Timestamp::MAX);
    moment.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn known_moments() {
        assert_eq!(text(0), "1970-01-01 00:00 UTC");
        assert_eq!(text(951_827_696), "2000-02-29 12:34 UTC");
        assert_eq!(text(1_795_309_320), "2026-11-22 01:02 UTC");
    }
}

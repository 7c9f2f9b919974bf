//! Moments as text, in UTC.

/// Seconds since 1970 as `2026-11-22 01:02 UTC` (the civil calendar, Hinnant's algorithm).
#[must_use]
pub(super) fn text(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that the leap day is their last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3600, rest / 60 % 60)
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

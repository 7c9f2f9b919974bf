use comity_grants::Moment;
use jiff::Timestamp;

/// The end of a grant, as the user typed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The credential ends this many seconds from now.
    After(u64),
    /// The credential ends at this moment.
    At(Moment),
}

impl Expiry {
    /// Reads a duration such as `30d`, or a moment as RFC 3339 writes it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(seconds) = seconds(text) {
            return Ok(Self::After(seconds));
        }
        let moment = text.parse::<Timestamp>().ok().map(Timestamp::as_second);
        let moment = moment.and_then(|seconds| u64::try_from(seconds).ok());
        let expected = "expected a duration such as 30d, 12h or 45m, or a moment such as \
             2027-01-31T12:00:00Z";
        moment.map(|seconds| Self::At(Moment::from_seconds(seconds))).ok_or(expected.to_owned())
    }

    /// The moment at which a grant that is made now ends.
    pub(crate) fn moment(self, now: Moment) -> Moment {
        match self {
            Self::After(seconds) => Moment::from_seconds(now.seconds().saturating_add(seconds)),
            Self::At(moment) => moment,
        }
    }
}

/// The seconds that a number with a unit means.
fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_moments_are_read() {
        let now = Moment::from_seconds(1_000_000);
        let at = |text: &str| Expiry::parse(text).map(|expiry| expiry.moment(now).seconds());
        assert_eq!(at("30d"), Ok(1_000_000 + 30 * 86_400));
        assert_eq!(at("45m"), Ok(1_002_700));
        assert_eq!(at("2001-09-09T01:46:40Z"), Ok(1_000_000_000));
        assert_eq!(at("2001-09-09T03:46:40+02:00"), Ok(1_000_000_000));
        for wrong in ["", "d", "0d", "-1d", "30", "30 d", "30y", "tomorrow", "1969-01-01T00:00:00Z"]
        {
            assert!(at(wrong).is_err(), "{wrong}");
        }
        assert!(at("999999999999999999999d").is_err());
    }
}

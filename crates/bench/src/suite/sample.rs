use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// One measured number. A result contains every sample, not only means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The name of the measure, as `throughput` or `list`; with `at` it says what it can be
    /// compared with.
    pub metric: String,
    /// The parameters of the measurement: `users` = 100, `cache` = `cold`. Empty where there is
    /// only one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, Place>,
    /// The number.
    pub value: f64,
    /// Its unit, which also says whether more is better.
    pub unit: Unit,
}

/// A coordinate of a sample.
#[derive(Debug, Clone, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

/// Units of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Unit {
    /// Operations a second.
    #[serde(rename = "operations/s")]
    OperationsPerSecond,
    /// Bytes a second.
    #[serde(rename = "bytes/s")]
    BytesPerSecond,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// A number of things; neither more nor less is better.
    #[serde(rename = "count")]
    Count,
}

/// The direction in which a number gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// A larger value is better.
    Higher,
    /// A smaller value is better.
    Lower,
    /// The value is shown and not compared.
    Neither,
}

impl Unit {
    /// Returns the direction in which the unit gets better.
    #[must_use]
    pub const fn better(self) -> Better {
        match self {
            Self::OperationsPerSecond | Self::BytesPerSecond => Better::Higher,
            Self::Seconds | Self::Nanoseconds => Better::Lower,
            Self::Count => Better::Neither,
        }
    }

    /// Returns the name of the unit, as it stands after a number.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::OperationsPerSecond => "operations/s",
            Self::BytesPerSecond => "bytes/s",
            Self::Seconds => "s",
            Self::Nanoseconds => "ns",
            Self::Count => "",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Word(word) => formatter.write_str(word),
        }
    }
}

impl From<&str> for Place {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

impl From<f64> for Place {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Place {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

/// The latencies of operations of one kind in one round: every one of them, in the buckets of a
/// histogram with three significant digits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The kind of operation.
    pub operation: String,
    /// The parameters, as in [`Sample::at`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, Place>,
    /// Pairs of the highest latency of a bucket in nanoseconds and the number of its operations;
    /// only buckets that are not empty, ascending.
    pub buckets: Vec<(u64, u64)>,
    /// True if latencies count from when the call was due (open loop), not from when it was made:
    /// only then do they hide no waiting (coordinated omission).
    pub from_due_time: bool,
}

/// The longest latency that is recorded exactly, in nanoseconds: 1,000 s.
const NANOSECONDS_MAX: u64 = 1_000_000_000_000;

impl Latency {
    /// Takes the values of a histogram of nanoseconds.
    #[must_use]
    pub fn of(operation: &str, histogram: &Histogram<u64>) -> Self {
        let buckets = histogram
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect();
        let operation = operation.to_owned();
        Self { operation, at: BTreeMap::new(), buckets, from_due_time: false }
    }

    /// Returns the number of operations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// The latency in nanoseconds that a share (0 to 1) of the operations does not exceed; 0 if
    /// there are none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = (share * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        let reaches = |(_, count): &&(u64, u64)| {
            seen += count;
            seen >= rank.max(1)
        };
        self.buckets.iter().find(reaches).map_or(0, |(nanoseconds, _)| *nanoseconds)
    }

    /// An empty histogram with the bounds and digits that all of the suite have.
    #[must_use]
    #[allow(clippy::expect_used, reason = "the bounds are constants that a histogram takes")]
    pub fn histogram() -> Histogram<u64> {
        Histogram::new_with_bounds(1, NANOSECONDS_MAX, 3).expect("constant bounds")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_keeps_every_operation() {
        let mut histogram = Latency::histogram();
        (1..=1000).for_each(|each| histogram.saturating_record(each * 1000));
        let latency = Latency::of("READ", &histogram);
        assert_eq!(latency.count(), 1000);
        assert!((499_000..=501_000).contains(&latency.quantile(0.5)), "{}", latency.quantile(0.5));
        assert!(latency.quantile(1.0) >= 1_000_000);
        let text = serde_json::to_string(&latency).unwrap();
        assert_eq!(serde_json::from_str::<Latency>(&text).unwrap(), latency);
    }

    #[test]
    fn places_are_written_as_what_they_are() {
        let sample = Sample {
            metric: "list".into(),
            at: [("users".to_owned(), 10_u64.into()), ("cache".to_owned(), "cold".into())].into(),
            value: 0.5,
            unit: Unit::Seconds,
        };
        let text = serde_json::to_string(&sample).unwrap();
        let at = r#"{"cache":"cold","users":10.0}"#;
        assert_eq!(text, format!(r#"{{"metric":"list","at":{at},"value":0.5,"unit":"s"}}"#));
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
    }
}

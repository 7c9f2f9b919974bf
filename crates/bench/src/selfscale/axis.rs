//! The five parameters of a workload, and a workload as a point among them.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail};

use crate::suite::Place;

/// A parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Axis {
    /// Distinct bytes that are read or written: the working set.
    UniqueBytes,
    /// Mean size of a request in bytes.
    SizeMean,
    /// The part of the requests that are reads.
    ReadFrac,
    /// The part of the requests that begin where the one before of the same process ended.
    SeqFrac,
    /// Processes at work at the same time.
    ProcessNum,
}

/// A workload: a value on every axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point([f64; Axis::COUNT]);

impl Axis {
    /// The number of axes.
    pub const COUNT: usize = 5;

    /// All axes, in the order in which they are explored.
    pub const ALL: [Self; Self::COUNT] =
        [Self::UniqueBytes, Self::SizeMean, Self::ReadFrac, Self::SeqFrac, Self::ProcessNum];

    /// The name of the axis in results and, after `--`, on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UniqueBytes => "unique-bytes",
            Self::SizeMean => "size-mean",
            Self::ReadFrac => "read-frac",
            Self::SeqFrac => "seq-frac",
            Self::ProcessNum => "process-num",
        }
    }

    /// The name of the axis in the papers.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::UniqueBytes => "uniqueBytes",
            Self::SizeMean => "sizeMean",
            Self::ReadFrac => "readFrac",
            Self::SeqFrac => "seqFrac",
            Self::ProcessNum => "processNum",
        }
    }

    /// Returns whether the values of the axis are from 0 to 1.
    #[must_use]
    pub const fn is_fraction(self) -> bool {
        matches!(self, Self::ReadFrac | Self::SeqFrac)
    }

    /// Returns the axis with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|axis| axis.name() == name)
    }
}

impl Point {
    /// The point with these values, in the order of [`Axis::ALL`].
    #[must_use]
    pub const fn new(values: [f64; Axis::COUNT]) -> Self {
        Self(values)
    }

    /// The value of the point on an axis.
    #[must_use]
    pub fn get(&self, axis: Axis) -> f64 {
        self.0[axis as usize]
    }

    /// The point with another value on one axis.
    #[must_use]
    pub fn with(mut self, axis: Axis, value: f64) -> Self {
        self.0[axis as usize] = value;
        self
    }

    /// Returns whether the two points differ on `axis` at most.
    #[must_use]
    pub fn is_beside(&self, other: &Self, axis: Axis) -> bool {
        self.with(axis, 0.0) == other.with(axis, 0.0)
    }

    /// The coordinates of a sample taken here.
    #[must_use]
    pub fn places(&self) -> [(&'static str, Place); Axis::COUNT] {
        Axis::ALL.map(|axis| (axis.name(), Place::Number(self.get(axis))))
    }

    /// The point with a sample's coordinates.
    ///
    /// # Errors
    /// A coordinate is missing or is no number.
    pub fn from_places(at: &BTreeMap<String, Place>) -> Result<Self> {
        let mut point = Self([0.0; Axis::COUNT]);
        for axis in Axis::ALL {
            let place = at.get(axis.name()).with_context(|| format!("no {} given", axis.name()))?;
            let Place::Number(value) = place else {
                bail!("{} is `{place}`, not a number", axis.name());
            };
            point = point.with(axis, *value);
        }
        Ok(point)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, axis) in Axis::ALL.into_iter().enumerate() {
            let gap = if number == 0 { "" } else { " " };
            write!(out, "{gap}--{} {}", axis.name(), self.get(axis))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_goes_through_the_coordinates_of_a_sample() {
        let point = Point::new([1e6, 4096.0, 0.25, 0.75, 3.0]);
        let at: BTreeMap<String, Place> =
            point.places().into_iter().map(|(name, place)| (name.to_owned(), place)).collect();
        assert_eq!(Point::from_places(&at).unwrap(), point);
        let mut missing = at.clone();
        missing.remove("seq-frac");
        assert!(Point::from_places(&missing).unwrap_err().to_string().contains("seq-frac"));
    }

    #[test]
    fn points_are_beside_each_other_on_one_axis_only() {
        let point = Point::new([1e6, 4096.0, 0.25, 0.75, 3.0]);
        let other = point.with(Axis::ReadFrac, 1.0);
        assert!(point.is_beside(&other, Axis::ReadFrac));
        assert!(!point.is_beside(&other, Axis::SeqFrac));
        assert!(Axis::ALL.into_iter().all(|axis| Axis::named(axis.name()) == Some(axis)));
    }
}

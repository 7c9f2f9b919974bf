//! Measures one workload by batches, until their mean is precise enough.

use anyhow::Result;

use super::{Axis, Curve, Point};
use crate::statistics::{CONFIDENCE, Verdict, mean, mean_interval};

/// The system that is measured.
pub trait Subject {
    /// Prepares batches of a workload: files as large as needed, cold caches, a warm-up.
    ///
    /// # Errors
    /// The preparation fails.
    fn prepare(&mut self, at: &Point) -> Result<()>;

    /// Runs a batch of the workload; returns its throughput in bytes a second.
    ///
    /// # Errors
    /// The work fails, or the data read is wrong.
    fn batch(&mut self) -> Result<f64>;

    /// Returns whether the time for the workload is used up; it then ends after two batches.
    fn is_due(&self) -> bool {
        false
    }

    /// Returns whether the time for all workloads is used up; optional measurements are then left
    /// out.
    fn is_late(&self) -> bool {
        false
    }

    /// Stores each value as soon as it is measured.
    fn keep(&mut self, stage: Stage, at: &Point, measured: &Measured) {
        let _ = (stage, at, measured);
    }
}

/// The purpose of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The value is a point of graphs.
    Graph,
    /// The value is compared with its prediction.
    Check,
}

/// When batches end: as soon as the 95 % interval of their mean lies within `spread` of it, but not
/// before `batches_min`, and at the latest after `batches_max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patience {
    /// Fewest batches.
    pub batches_min: usize,
    /// Most batches: the cap.
    pub batches_max: usize,
    /// The spread at which batches may end: half the interval, as a part of the mean.
    pub spread: f64,
}

/// Throughput of the batches of one workload, in bytes a second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// Every batch.
    pub batches: Vec<f64>,
}

impl Patience {
    /// Returns whether batches may end.
    #[must_use]
    pub fn is_over(&self, batches: &[f64]) -> bool {
        let spread = || mean_interval(batches, CONFIDENCE).map_or(f64::INFINITY, |i| i.spread());
        batches.len() >= self.batches_max
            || batches.len() >= self.batches_min && spread() <= self.spread
    }
}

impl Measured {
    /// The mean of the batches; 0 if there are none.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        mean(&self.batches).unwrap_or(0.0)
    }

    /// Half the 95 % interval of the mean, as a part of it; 0 for fewer than two batches.
    #[must_use]
    pub fn spread(&self) -> f64 {
        mean_interval(&self.batches, CONFIDENCE).map_or(0.0, |interval| interval.spread())
    }

    /// Returns the quality of the value: steady within 5 %, or the cap was reached first.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.batches)
    }
}

/// A subject with all its measurements: no point is measured twice.
pub struct Bench<'a> {
    subject: &'a mut dyn Subject,
    patience: Patience,
    measured: Vec<(Point, Measured)>,
}

impl<'a> Bench<'a> {
    /// Starts measuring a subject.
    pub fn new(subject: &'a mut dyn Subject, patience: Patience) -> Self {
        Self { subject, patience, measured: Vec::new() }
    }

    /// Returns the number of workloads measured so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.measured.len()
    }

    /// See [`Subject::is_late`].
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.subject.is_late()
    }

    /// The throughput of a workload, for graphs.
    ///
    /// # Errors
    /// Those of the subject.
    pub fn throughput(&mut self, at: &Point) -> Result<f64> {
        if let Some((_, known)) = self.measured.iter().find(|(point, _)| point == at) {
            return Ok(known.throughput());
        }
        let measured = self.measure(Stage::Graph, at)?;
        let throughput = measured.throughput();
        self.measured.push((*at, measured));
        Ok(throughput)
    }

    /// Measures a workload, also if it was measured before.
    ///
    /// # Errors
    /// Those of the subject.
    pub fn measure(&mut self, stage: Stage, at: &Point) -> Result<Measured> {
        self.subject.prepare(at)?;
        let mut measured = Measured::default();
        let is_due = |subject: &dyn Subject, batches: usize| batches >= 2 && subject.is_due();
        while !self.patience.is_over(&measured.batches)
            && !is_due(self.subject, measured.batches.len())
        {
            measured.batches.push(self.subject.batch()?);
        }
        self.subject.keep(stage, at, &measured);
        Ok(measured)
    }

    /// The graph through `around` over an axis, at some values.
    ///
    /// # Errors
    /// Those of the subject.
    pub fn curve(&mut self, around: &Point, axis: Axis, values: &[f64]) -> Result<Curve> {
        let mut measure = |value: &f64| Ok((*value, self.throughput(&around.with(axis, *value))?));
        let points = values.iter().map(&mut measure).collect::<Result<_>>()?;
        Ok(Curve::new(axis, points))
    }

    /// All measurements for graphs.
    #[must_use]
    pub fn measured(&self) -> &[(Point, Measured)] {
        &self.measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { batches_min: 5, batches_max: 30, spread: 0.05 };

    /// A subject whose batches vary around 100 by a part.
    struct Swinging {
        part: f64,
        batches: usize,
        prepared: usize,
        is_due: bool,
    }

    impl Subject for Swinging {
        fn prepare(&mut self, _: &Point) -> Result<()> {
            self.prepared += 1;
            Ok(())
        }

        fn batch(&mut self) -> Result<f64> {
            self.batches += 1;
            let sign = if self.batches.is_multiple_of(2) { 1.0 } else { -1.0 };
            Ok(100.0 * (1.0 + sign * self.part))
        }

        fn is_due(&self) -> bool {
            self.is_due
        }
    }

    fn measured(part: f64) -> Measured {
        let mut subject = Swinging { part, batches: 0, prepared: 0, is_due: false };
        let at = Point::new([1e6, 4096.0, 0.5, 0.5, 1.0]);
        Bench::new(&mut subject, PATIENCE).measure(Stage::Graph, &at).unwrap()
    }

    #[test]
    fn a_steady_workload_takes_the_fewest_batches_and_an_unsteady_one_more() {
        assert_eq!(measured(0.001).batches.len(), 5);
        let more = measured(0.08);
        assert!((6..30).contains(&more.batches.len()), "{}", more.batches.len());
        assert!(more.verdict().is_steady());
    }

    #[test]
    fn the_cap_ends_what_never_settles_and_the_verdict_says_so() {
        let never = measured(0.5);
        assert_eq!(never.batches.len(), 30);
        assert!(!never.verdict().is_steady());
    }

    #[test]
    fn a_workload_that_has_had_its_time_ends_with_two_batches() {
        let mut subject = Swinging { part: 0.5, batches: 0, prepared: 0, is_due: true };
        let at = Point::new([1e6, 4096.0, 0.5, 0.5, 1.0]);
        let measured = Bench::new(&mut subject, PATIENCE).measure(Stage::Graph, &at).unwrap();
        assert_eq!(measured.batches.len(), 2);
    }

    #[test]
    fn no_point_of_a_graph_is_measured_twice() {
        let mut subject = Swinging { part: 0.0, batches: 0, prepared: 0, is_due: false };
        let at = Point::new([1e6, 4096.0, 0.5, 0.5, 1.0]);
        let mut bench = Bench::new(&mut subject, PATIENCE);
        let curve = bench.curve(&at, Axis::ReadFrac, &[0.0, 0.5, 1.0]).unwrap();
        bench.curve(&at, Axis::SeqFrac, &[0.0, 0.5, 1.0]).unwrap();
        assert_eq!((curve.points().len(), bench.count()), (3, 5));
        assert_eq!(subject.prepared, 5);
    }
}

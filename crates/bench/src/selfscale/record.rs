//! The form of the benchmark in a result: every batch as a sample at its coordinates, and the focal
//! vector. Each reader computes plateaus, graphs and predictions from these.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::scale::plateaus;
use super::{Axis, Curve, Exploration, Family, Measured, Model, Plateau, Point, SelfCheck, Stage};
use crate::suite::{Place, Sample, Unit};

/// The metric of batches for graphs.
const THROUGHPUT: &str = "throughput";

/// The metric of batches of workloads that are also predicted.
const CHECK: &str = "check";

/// The metric of a value of the focal vector.
const FOCAL: &str = "focal";

/// The metric of the number of turns of the exploration.
const TURNS: &str = "turns";

/// The metric that is 1 if no value moved in the last turn, otherwise 0.
const SETTLED: &str = "settled";

/// The records of the benchmark in a result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recorded {
    /// The focal vector, once it was found.
    pub exploration: Option<Exploration>,
    /// The measurements for graphs.
    pub graphs: Vec<(Point, Measured)>,
    /// The measurements that check predictions.
    pub checks: Vec<(Point, Measured)>,
}

impl Recorded {
    /// Finds the records among the samples of a round.
    ///
    /// # Errors
    /// A sample lacks a coordinate.
    pub fn of(samples: &[Sample]) -> Result<Self> {
        let mut found = Self::default();
        for sample in samples {
            match sample.metric.as_str() {
                THROUGHPUT => add(&mut found.graphs, sample)?,
                CHECK => add(&mut found.checks, sample)?,
                _ => {}
            }
        }
        found.exploration = exploration(samples)?;
        Ok(found)
    }

    /// The samples of a measured workload.
    #[must_use]
    pub fn samples(stage: Stage, at: &Point, measured: &Measured) -> Vec<Sample> {
        let metric = match stage {
            Stage::Graph => THROUGHPUT,
            Stage::Check => CHECK,
        };
        let at: BTreeMap<String, Place> =
            at.places().into_iter().map(|(name, place)| (name.to_owned(), place)).collect();
        let sample = |value: &f64| {
            let (metric, at) = (metric.to_owned(), at.clone());
            Sample { metric, at, value: *value, unit: Unit::BytesPerSecond }
        };
        measured.batches.iter().map(sample).collect()
    }

    /// The samples of the result of an exploration.
    #[must_use]
    pub fn choice(found: &Exploration) -> Vec<Sample> {
        let sample = |metric: &str, at: BTreeMap<String, Place>, value: f64| Sample {
            metric: metric.to_owned(),
            at,
            value,
            unit: Unit::Count,
        };
        let focal = Axis::ALL.map(|axis| {
            let at = [("parameter".to_owned(), axis.name().into())].into();
            sample(FOCAL, at, found.focal.get(axis))
        });
        let settled = if found.is_settled { 1.0 } else { 0.0 };
        let ended = [(TURNS, found.turns as f64), (SETTLED, settled)];
        let ended = ended.map(|(metric, value)| sample(metric, BTreeMap::new(), value));
        focal.into_iter().chain(ended).collect()
    }

    /// The plateaus with their graphs; `None` if the run ended before the focal vector was found.
    #[must_use]
    pub fn model(&self) -> Option<Model> {
        let focal = self.exploration.as_ref()?.focal;
        let over_bytes = Curve::through(&focal, Axis::UniqueBytes, &self.graphs);
        let family = |plateau: Plateau| {
            Family::of(plateau, focal.with(Axis::UniqueBytes, plateau.focal), &self.graphs)
        };
        Model::new(plateaus(&over_bytes).into_iter().filter_map(family).collect())
    }

    /// Checks the predictions of a model.
    #[must_use]
    pub fn check(&self, model: &Model) -> Option<SelfCheck> {
        SelfCheck::of(model, &self.checks)
    }
}

fn add(list: &mut Vec<(Point, Measured)>, sample: &Sample) -> Result<()> {
    let at = Point::from_places(&sample.at).with_context(|| format!("a `{}`", sample.metric))?;
    match list.iter_mut().find(|(point, _)| *point == at) {
        Some((_, measured)) => measured.batches.push(sample.value),
        None => list.push((at, Measured { batches: vec![sample.value] })),
    }
    Ok(())
}

fn exploration(samples: &[Sample]) -> Result<Option<Exploration>> {
    let value = |metric: &str| samples.iter().find(|s| s.metric == metric).map(|s| s.value);
    let (Some(turns), Some(settled)) = (value(TURNS), value(SETTLED)) else {
        return Ok(None);
    };
    let mut focal = Point::new([0.0; Axis::COUNT]);
    for axis in Axis::ALL {
        let is_it = |sample: &&Sample| {
            sample.metric == FOCAL && sample.at.get("parameter") == Some(&axis.name().into())
        };
        let sample = samples.iter().find(is_it);
        let sample = sample.with_context(|| format!("no focal value of {}", axis.name()))?;
        focal = focal.with(axis, sample.value);
    }
    Ok(Some(Exploration { focal, turns: turns as usize, is_settled: settled == 1.0 }))
}

//! The self-scaling benchmark against targets whose curves are known.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use anyhow::Result;
use comity_bench::rng::Rng;
use comity_bench::selfscale::{
    Axis, Bench, Finding, Measured, Patience, Point, Recorded, Space, Stage, Subject, explore, run,
};
use comity_bench::suite::Sample;

const PATIENCE: Patience = Patience { batches_min: 5, batches_max: 40, spread: 0.05 };

/// A target that is a formula, with noise on every batch.
struct Synthetic<F: Fn(&Point) -> f64> {
    formula: F,
    noise: f64,
    rng: Rng,
    at: Point,
}

impl<F: Fn(&Point) -> f64> Synthetic<F> {
    fn new(formula: F, noise: f64) -> Self {
        Self { formula, noise, rng: Rng::new(9), at: Point::new([1.0; 5]) }
    }
}

impl<F: Fn(&Point) -> f64> Subject for Synthetic<F> {
    fn prepare(&mut self, at: &Point) -> Result<()> {
        self.at = *at;
        Ok(())
    }

    fn batch(&mut self) -> Result<f64> {
        Ok((self.formula)(&self.at) * (1.0 + self.noise * self.rng.normal()))
    }
}

fn space() -> Space {
    Space::new((1e6, 1024e6), (1024.0, 1048576.0), 8.0)
}

/// Three levels: a client's cache up to 30 MB, a server's up to 200 MB, a disk.
fn level(bytes: f64) -> f64 {
    match bytes {
        small if small <= 30e6 => 900e6,
        middle if middle <= 200e6 => 110e6,
        _ => 12e6,
    }
}

/// Throughput of requests of one size, as a fraction of that of infinitely long requests: each
/// takes a fixed time and a time for each byte.
fn size_shape(size: f64) -> f64 {
    size / (size + 8192.0)
}

/// Throughput of a mix of reads and writes where writes are half as fast.
fn mix_shape(reads: f64) -> f64 {
    1.0 / (reads + (1.0 - reads) * 2.0)
}

fn seek_shape(sequential: f64) -> f64 {
    1.0 / (sequential + (1.0 - sequential) * 1.6)
}

fn process_shape(processes: f64) -> f64 {
    processes.powf(0.3)
}

/// Each parameter contributes a factor of its own, so that the model is exact.
fn independent(at: &Point) -> f64 {
    level(at.get(Axis::UniqueBytes))
        * size_shape(at.get(Axis::SizeMean))
        * mix_shape(at.get(Axis::ReadFrac))
        * seek_shape(at.get(Axis::SeqFrac))
        * process_shape(at.get(Axis::ProcessNum))
}

/// A small write costs a disk access while reads come from memory, so that the effect of the size
/// depends on the fraction of reads.
fn dependent(at: &Point) -> f64 {
    let (size, reads) = (at.get(Axis::SizeMean), at.get(Axis::ReadFrac));
    let seconds = reads * size / 1e9 + (1.0 - reads) * (5e-3 + size / 1e9);
    size / seconds
}

fn found(formula: impl Fn(&Point) -> f64, noise: f64, checks: usize) -> Finding {
    run(&mut Synthetic::new(formula, noise), &space(), PATIENCE, (checks, 77)).unwrap()
}

#[test]
fn focal_values_are_those_of_the_formula() {
    let mut subject = Synthetic::new(independent, 0.0);
    let mut bench = Bench::new(&mut subject, PATIENCE);
    let found = explore(&mut bench, &space()).unwrap();
    assert!(found.is_settled && found.turns == 2, "{found:?}");
    // size/(size + 8192) is 0.75 of its largest value (0.992 at 1 MiB) from 23.9 KiB on.
    assert_eq!(found.focal.get(Axis::SizeMean), 65_536.0);
    // The last working set of the first level; 1/(2 - r) is 0.75 at r = 0.67, and so on.
    assert_eq!(found.focal.get(Axis::UniqueBytes), 16e6);
    assert_eq!(found.focal.get(Axis::ReadFrac), 0.75);
    assert_eq!(found.focal.get(Axis::SeqFrac), 0.5);
    assert_eq!(found.focal.get(Axis::ProcessNum), 4.0);
}

#[test]
fn each_plateau_is_found_with_its_ends_and_its_level() {
    let found = found(independent, 0.02, 0);
    let families = found.model.families();
    assert_eq!(families.len(), 3);
    for (family, wanted) in families.iter().zip([900e6, 110e6, 12e6]) {
        let plateau = family.plateau;
        assert!(plateau.is_flat, "{plateau:?}");
        let factor = independent(&family.focal) / level(family.focal.get(Axis::UniqueBytes));
        assert!((plateau.level / (wanted * factor) - 1.0).abs() < 0.05, "{plateau:?}");
        assert!(plateau.low < plateau.focal && plateau.focal < plateau.high, "{plateau:?}");
    }
    let ends = [families[0].plateau.high, families[1].plateau.low];
    assert!(ends[0] <= 30e6 && 30e6 < ends[1] && ends[1] / ends[0] < 1.2, "{ends:?}");
    let ends = [families[1].plateau.high, families[2].plateau.low];
    assert!(ends[0] <= 200e6 && 200e6 < ends[1] && ends[1] / ends[0] < 1.2, "{ends:?}");
}

#[test]
fn predictions_are_within_five_percent_if_parameters_are_independent() {
    let found = found(independent, 0.02, 60);
    let check = found.check.unwrap();
    let on_plateaus = check.checks.iter().filter(|check| !check.prediction.is_between);
    let errors: Vec<f64> = on_plateaus.map(|check| check.error()).collect();
    let p90 = comity_bench::statistics::quantile(&errors, 0.9).unwrap();
    assert!(check.error_median < 0.05 && p90 < 0.05, "{} {p90}", check.error_median);
    assert!(check.is_trusted(), "{:?}", check.warnings);
}

#[test]
fn parameters_that_depend_on_each_other_are_named_in_a_warning() {
    let found = found(dependent, 0.01, 40);
    let check = found.check.unwrap();
    assert!(check.error_median > 0.15, "{}", check.error_median);
    let warning = check.warnings.join(" ");
    assert!(warning.contains("the shapes are not independent"), "{warning}");
    assert!(warning.contains("sizeMean and readFrac"), "{warning}");
}

#[test]
fn noise_is_reported_and_makes_no_plateaus() {
    let patience = Patience { batches_max: 8, ..PATIENCE };
    let mut wild = Synthetic::new(|_| 5e6, 0.4);
    let found = run(&mut wild, &space(), patience, (20, 77)).unwrap();
    let warning = found.check.unwrap().warnings.join(" ");
    assert!(warning.contains("too noisy to predict from"), "{warning}");
    assert!(!warning.contains("independent"), "{warning}");
    assert_eq!(found.model.families().len(), 1, "noise has steps");
    let mild = self::found(independent, 0.1, 30);
    assert!(mild.check.unwrap().is_trusted() && mild.model.families().len() == 3);
}

#[test]
fn a_target_of_constant_throughput_gets_the_default_focal_values() {
    let found = found(|_| 5e6, 0.01, 5);
    let focal = found.exploration.focal;
    assert_eq!((focal.get(Axis::ReadFrac), focal.get(Axis::SeqFrac)), (0.5, 0.5));
    assert_eq!(focal.get(Axis::ProcessNum), 1.0);
    assert_eq!(found.model.families().len(), 1);
    assert!(found.check.unwrap().error_p90 < 0.05);
}

#[test]
fn a_search_whose_focal_values_repeat_ends_with_a_warning() {
    // From each of the four corners, the focal value of one of the two axes leads to the next
    // corner.
    let circling = |at: &Point| match (at.get(Axis::ReadFrac), at.get(Axis::SeqFrac)) {
        (0.0 | 1.0, 0.0) => 40e6,
        (0.5, 1.0) => 10e6,
        (1.0, 1.0) => 20e6,
        _ => 0.01e6,
    };
    let mut subject = Synthetic::new(circling, 0.0);
    let found = explore(&mut Bench::new(&mut subject, PATIENCE), &space()).unwrap();
    assert!(!found.is_settled && found.turns <= 6, "{found:?}");
}

#[test]
fn a_prediction_outside_the_measured_range_is_marked() {
    let model = found(independent, 0.0, 0).model;
    let focal = model.families()[0].focal;
    assert!(model.predict(&focal).beyond.is_empty());
    let far = focal.with(Axis::SizeMean, 1e9).with(Axis::ProcessNum, 99.0);
    assert_eq!(model.predict(&far).beyond, [Axis::SizeMean, Axis::ProcessNum]);
    let between = focal.with(Axis::UniqueBytes, 31e6);
    assert!(model.predict(&between).is_between);
}

/// A subject that keeps its samples, as the engine does for real files.
struct RecordingSubject<S> {
    subject: S,
    samples: Vec<Sample>,
}

impl<S: Subject> Subject for RecordingSubject<S> {
    fn prepare(&mut self, at: &Point) -> Result<()> {
        self.subject.prepare(at)
    }

    fn batch(&mut self) -> Result<f64> {
        self.subject.batch()
    }

    fn keep(&mut self, stage: Stage, at: &Point, measured: &Measured) {
        self.samples.extend(Recorded::samples(stage, at, measured));
    }
}

#[test]
fn a_result_gives_the_same_model_and_check_as_the_run() {
    let subject = Synthetic::new(independent, 0.02);
    let mut kept = RecordingSubject { subject, samples: Vec::new() };
    let found = run(&mut kept, &space(), PATIENCE, (10, 5)).unwrap();
    let partial = Recorded::of(&kept.samples).unwrap();
    assert!(partial.model().is_none(), "no focal vector, no graphs");
    kept.samples.extend(Recorded::choice(&found.exploration));
    let recorded = Recorded::of(&kept.samples).unwrap();
    assert_eq!(recorded.exploration.as_ref(), Some(&found.exploration));
    let model = recorded.model().unwrap();
    assert_eq!(model, found.model);
    assert_eq!(recorded.check(&model), found.check);
    // Throughput may lose its last digit in the file, but coordinates may not.
    let text = serde_json::to_string(&kept.samples).unwrap();
    let read = Recorded::of(&serde_json::from_str::<Vec<Sample>>(&text).unwrap()).unwrap();
    let read = read.model().unwrap();
    for (read, known) in read.families().iter().zip(model.families()) {
        assert_eq!(read.focal, known.focal);
        assert!((read.throughput / known.throughput - 1.0).abs() < 1e-12);
    }
}

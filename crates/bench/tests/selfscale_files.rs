//! The self-scaling benchmark on real files: the requests that it makes, and its run on a target
//! that returns wrong data.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use comity_bench::runner::Chosen;
use comity_bench::selfscale::predict::recorded;
use comity_bench::targets::DirectoryTarget;
use common::watched::{Lie, Watched};
use common::{chosen, names, plan, run};

/// The benchmark with few working sets; each takes milliseconds.
fn small() -> Chosen {
    let parameters = [
        ("bytes-least", "64K"),
        ("bytes-most", "256K"),
        ("size-least", "1K"),
        ("size-most", "16K"),
        ("process-most", "2"),
        ("batch-seconds", "0.001"),
        ("batches-max", "5"),
        ("warm-up-seconds", "0.01"),
        ("checks", "3"),
    ];
    chosen("selfscale", &parameters)
}

#[test]
fn a_directory_gets_a_model_that_predicts_and_is_left_empty() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = DirectoryTarget::open(place.path()).unwrap();
    let (ran, outcome) = run(&plan(vec![small()], output.path()), Box::new(target));
    ran.unwrap();
    assert!(outcome.complete);
    assert_eq!(names(place.path()), Vec::<String>::new());
    let (_, recorded) = recorded(&outcome).unwrap().remove(0);
    assert_eq!(recorded.checks.len(), 3);
    assert!(recorded.graphs.iter().all(|(_, measured)| measured.batches.len() == 5));
    let model = recorded.model().unwrap();
    let focal = model.families()[0].focal;
    let found = model.predict(&focal);
    assert!((found.throughput / model.families()[0].throughput - 1.0).abs() < 1e-9);
    assert!(recorded.check(&model).is_some());
}

#[test]
fn wrong_data_ends_the_run_and_the_samples_are_kept() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = Watched::new(place.path(), Lie::WrongData(12_000));
    let (ran, outcome) = run(&plan(vec![small()], output.path()), Box::new(target));
    let error = ran.unwrap_err();
    assert!(error.contains("wrong data, byte"), "{error}");
    let round = &outcome.workloads[0].rounds[0];
    assert!(!round.complete && !round.samples.is_empty());
    let (_, recorded) = recorded(&outcome).unwrap().remove(0);
    assert!(recorded.model().is_none() && !recorded.graphs.is_empty());
}

/// Offset and length of each read or write in one file, in order.
fn requests(log: &[String], verb: &str) -> Vec<(u64, u64)> {
    let numbers = log.iter().filter_map(|line| {
        let (length, offset) = line.strip_prefix(verb)?.split_once(" at ")?;
        Some((offset.parse().ok()?, length.parse().ok()?))
    });
    numbers.collect()
}

#[test]
fn every_process_reads_and_writes_within_its_own_files() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = Watched::new(place.path(), Lie::None);
    let shared = target.shared();
    run(&plan(vec![small()], output.path()), Box::new(target)).0.unwrap();
    let log = shared.log.lock().unwrap();
    let opened = |process: &str| {
        log.iter().filter(|line| line.contains("open") && line.contains(process)).count()
    };
    assert!(opened("process-0-0") > 20 && opened("process-1-0") > 2, "no second process");
    assert_eq!(opened("process-2-0"), 0);
    let (reads, writes) = (requests(&log, "read "), requests(&log, "write "));
    assert!(reads.len() > 1_000 && writes.len() > 1_000, "{} {}", reads.len(), writes.len());
    assert!(reads.iter().chain(&writes).all(|(offset, length)| offset + length <= 256 << 10));
}

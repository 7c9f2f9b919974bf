//! Comparison of two results: the differences that are reported, those that are not, and those that
//! exit with 1.

use std::collections::BTreeMap;

use comity_bench::compare::compare;
use comity_bench::suite::{
    Environment, Parameters, Preset, Round, SCHEMA, Sample, SuiteOutcome, TargetKind, TargetRecord,
    Unit, WorkloadRecord,
};

fn round(number: u32, samples: Vec<Sample>) -> Round {
    Round {
        target: 0,
        round: number,
        started_seconds: 0.0,
        wall_seconds: 1.0,
        complete: true,
        samples,
        latencies: Vec::new(),
        calls: None,
        notes: Vec::new(),
    }
}

fn sample(metric: &str, value: f64, unit: Unit) -> Sample {
    Sample { metric: metric.to_owned(), at: BTreeMap::new(), value, unit }
}

/// A result of four rounds; their rates and times vary around these values by the fraction `swing`.
fn outcome(target: &str, rate: f64, seconds: f64, swing: f64) -> SuiteOutcome {
    let rounds = [-1.0, -0.3, 0.4, 0.9].iter().enumerate().map(|(number, side)| {
        let near = 1.0 + swing * side;
        let samples = vec![
            sample("rate", rate * near, Unit::OperationsPerSecond),
            sample("time", seconds * near, Unit::Seconds),
            sample("files", 500.0, Unit::Count),
        ];
        round(number as u32, samples)
    });
    let record = TargetRecord {
        name: target.to_owned(),
        kind: TargetKind::Fake,
        server: None,
        mount: None,
        durability: String::new(),
        sync_seconds: None,
        cache_reset: String::new(),
        settings: BTreeMap::new(),
    };
    let workload = WorkloadRecord {
        name: "postmark".to_owned(),
        parameters: Parameters::default(),
        rounds: rounds.collect(),
    };
    SuiteOutcome {
        schema: SCHEMA,
        tool: String::new(),
        started: 0,
        updated: 0,
        complete: true,
        failure: None,
        seed: 1,
        preset: Preset::Quick,
        rounds: 4,
        environment: Environment::default(),
        targets: vec![record],
        workloads: vec![workload],
    }
}

#[test]
fn a_slower_result_is_worse_whether_rates_or_times_were_measured() {
    let found = compare(&outcome("a", 100.0, 2.0, 0.01), &outcome("b", 80.0, 2.5, 0.01)).unwrap();
    assert_eq!(found.rows.len(), 2, "counts are reported, not judged");
    for row in &found.rows {
        assert!((row.gain.interval.center - 0.8).abs() < 1e-9, "{}", row.name());
        assert!(row.is_worse_by(0.05) && !row.is_worse_by(0.25), "{}", row.name());
    }
    let back = compare(&outcome("a", 80.0, 2.5, 0.01), &outcome("b", 100.0, 2.0, 0.01)).unwrap();
    assert!(back.rows.iter().all(|row| !row.is_worse_by(0.0)));
}

#[test]
fn a_difference_that_noise_may_explain_is_not_worse() {
    let found = compare(&outcome("a", 100.0, 2.0, 0.4), &outcome("b", 85.0, 2.3, 0.4)).unwrap();
    assert!(found.rows.iter().all(|row| !row.gain.is_distinct() && !row.is_worse_by(0.05)));
}

#[test]
fn other_parameters_are_not_compared() {
    let mut other = outcome("a", 100.0, 2.0, 0.01);
    other.workloads[0].parameters =
        serde_json::from_value(serde_json::json!({ "files": "500" })).unwrap();
    let error = compare(&outcome("a", 100.0, 2.0, 0.01), &other).unwrap_err();
    assert!(error.to_string().contains("postmark: other parameters"), "{error}");
}

#[test]
fn targets_of_the_same_name_are_compared_with_each_other() {
    let two = |first: &str, second: &str| {
        let mut all = outcome(first, 100.0, 2.0, 0.01);
        let more = outcome(second, 50.0, 4.0, 0.01);
        all.targets.extend(more.targets);
        let rounds = more.workloads.into_iter().flat_map(|workload| workload.rounds);
        all.workloads[0].rounds.extend(rounds.map(|round| Round { target: 1, ..round }));
        all
    };
    let found = compare(&two("x", "y"), &two("y", "z")).unwrap();
    assert_eq!(found.rows.len(), 2);
    assert!(found.rows.iter().all(|row| row.target == "y"));
    assert!((found.rows[0].gain.interval.center - 2.0).abs() < 1e-9);
    assert_eq!(found.left_out, ["postmark on z: only in the second"]);
}

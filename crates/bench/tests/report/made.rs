//! A result that was not measured but written by hand, with everything that a report can show.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use comity_bench::rng::Rng;
use comity_bench::selfscale::{
    Axis, Measured, Patience, Point, Recorded, Space, Stage, Subject, run,
};
use comity_bench::suite::{
    Context, Environment, Figure, Latency, Parameter, Parameters, Place, Preset, Round, SCHEMA,
    Sample, SuiteOutcome, TargetKind, TargetRecord, Unit, Workload, WorkloadRecord,
};

/// Names that would break out of markup if they were not escaped.
pub(crate) const TARGETS: [&str; 2] = ["peer:ganesha", "nfs://[::1]:2049/<b>&\"x\""];

/// Rounds of each workload.
const ROUNDS: u32 = 5;

/// A workload with figures of the original.
struct Stone;

impl Workload for Stone {
    fn name(&self) -> &'static str {
        "nfsstone"
    }

    fn about(&self) -> &'static str {
        "A mix of operations"
    }

    fn origin(&self) -> &'static str {
        "Made up for this test."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn history(&self) -> &'static [Figure] {
        &[Figure {
            metric: "rate",
            at: &[],
            value: 900.0,
            unit: Unit::OperationsPerSecond,
            system: "a P-III of 2002",
            source: "Figure 3",
        }]
    }

    fn run(&self, _: &mut Context<'_>) -> Result<()> {
        Ok(())
    }
}

pub(crate) fn workloads() -> Vec<Arc<dyn Workload>> {
    vec![Arc::new(Stone)]
}

fn sample(metric: &str, at: &[(&str, Place)], value: f64, unit: Unit) -> Sample {
    let at = at.iter().map(|(name, place)| ((*name).to_owned(), place.clone())).collect();
    Sample { metric: metric.to_owned(), at, value, unit }
}

/// Makes the samples of rounds: a rate, phases in seconds, one of them noisy, and a curve.
fn samples(rng: &mut Rng, factor: f64) -> Vec<Sample> {
    let mut near = |value: f64, part: f64| value * (1.0 + part * rng.normal());
    let rate = near(24_000.0, 0.01) * factor;
    let mut out = vec![sample("rate", &[], rate, Unit::OperationsPerSecond)];
    for (phase, seconds) in [("mkdir", 0.12), ("copy", 0.31), ("stat", 0.08), ("compile", 0.27)] {
        let noise = if phase == "stat" { 0.3 } else { 0.01 };
        let at = [("phase", phase.into())];
        out.push(sample("phase", &at, near(seconds, noise) / factor, Unit::Seconds));
    }
    for files in [1_u64, 10, 100, 1000] {
        let each = near(3e-4 / (files as f64).powf(0.1), 0.02) / factor;
        out.push(sample("lock", &[("files", files.into())], each, Unit::Seconds));
    }
    out.push(sample("directories", &[], 40.0, Unit::Count));
    out
}

fn latency(rng: &mut Rng, factor: f64) -> Latency {
    let mut histogram = Latency::histogram();
    for _ in 0..5_000 {
        let long = if rng.unit() < 0.01 { 20.0 } else { 1.0 };
        histogram.saturating_record((80e3 * long * (0.4 * rng.normal()).exp() / factor) as u64);
    }
    Latency::of("READ", &histogram)
}

fn round(target: usize, round: u32) -> Round {
    let mut rng = Rng::branch(3, u64::from(round) * 2 + target as u64);
    let factor = [1.0, 1.6][target];
    let calls: BTreeMap<String, u64> =
        [("READ".to_owned(), 14_567), ("LOOKUP".to_owned(), 24_127)].into();
    Round {
        target,
        round,
        started_seconds: f64::from(round),
        wall_seconds: 1.0,
        complete: true,
        samples: samples(&mut rng, factor),
        latencies: vec![latency(&mut rng, factor)],
        calls: Some(calls),
        notes: vec!["caches were not reset: </ul><script>".to_owned()],
    }
}

/// A file server whose throughput is a formula with three plateaus.
struct Server {
    factor: f64,
    at: Point,
    rng: Rng,
    kept: Vec<Sample>,
}

impl Subject for Server {
    fn prepare(&mut self, at: &Point) -> Result<()> {
        self.at = *at;
        Ok(())
    }

    fn batch(&mut self) -> Result<f64> {
        let at = |axis| self.at.get(axis);
        let level = match at(Axis::UniqueBytes) {
            client if client < 40e6 * self.factor => 900e6,
            server if server < 300e6 => 110e6 * self.factor,
            _ => 25e6,
        };
        let shape = at(Axis::SizeMean) / (at(Axis::SizeMean) + 9e3)
            * at(Axis::ProcessNum).powf(0.2)
            / (2.0 - at(Axis::ReadFrac))
            / (1.4 - 0.4 * at(Axis::SeqFrac));
        Ok(level * shape * (1.0 + 0.03 * self.rng.normal()))
    }

    fn keep(&mut self, stage: Stage, at: &Point, measured: &Measured) {
        self.kept.extend(Recorded::samples(stage, at, measured));
    }
}

fn selfscale(target: usize) -> Round {
    let at = Point::new([1.0; 5]);
    let factor = [1.0, 1.6][target];
    let mut server = Server { factor, at, rng: Rng::new(target as u64), kept: Vec::new() };
    let space = Space::new((1e6, 1024e6), (1024.0, 1048576.0), 4.0);
    let patience = Patience { batches_min: 5, batches_max: 20, spread: 0.05 };
    let found = run(&mut server, &space, patience, (12, 5)).unwrap();
    server.kept.extend(Recorded::choice(&found.exploration));
    Round {
        samples: server.kept,
        latencies: Vec::new(),
        calls: None,
        notes: Vec::new(),
        ..round(target, 0)
    }
}

fn record(name: &str, rounds: Vec<Round>) -> WorkloadRecord {
    WorkloadRecord { name: name.to_owned(), parameters: Parameters::default(), rounds }
}

pub(crate) fn outcome() -> SuiteOutcome {
    let stone = (0..ROUNDS).flat_map(|number| [round(0, number), round(1, number)]).collect();
    let target = |name: &str| TargetRecord {
        name: name.to_owned(),
        kind: TargetKind::Protocol,
        server: Some("made up 1.0".to_owned()),
        mount: None,
        durability: "none".to_owned(),
        sync_seconds: Some(0.001_7),
        cache_reset: "not at all".to_owned(),
        settings: BTreeMap::new(),
    };
    SuiteOutcome {
        schema: SCHEMA,
        tool: "comity test".to_owned(),
        started: 1_795_309_320,
        updated: 1_795_309_920,
        complete: true,
        failure: None,
        seed: 7,
        preset: Preset::Quick,
        rounds: ROUNDS,
        environment: Environment {
            host: "here".to_owned(),
            cpus: 2,
            load: "7.5".to_owned(),
            ..Environment::default()
        },
        targets: TARGETS.map(target).to_vec(),
        workloads: vec![
            record("nfsstone", stone),
            record("selfscale", vec![selfscale(0), selfscale(1)]),
        ],
    }
}

/// A result like [`outcome`] with a third target, whose figures are those of the second.
pub(crate) fn outcome_of_three() -> SuiteOutcome {
    let mut outcome = outcome();
    let second = outcome.targets[1].clone();
    let names = ["peer:ganesha", "peer:comity", "nfs://server/export"];
    outcome.targets = names.map(|name| TargetRecord { name: name.into(), ..second.clone() }).into();
    let rounds = &mut outcome.workloads[0].rounds;
    let done: Vec<Round> = rounds.iter().filter(|round| round.target == 1).cloned().collect();
    rounds.extend(done.into_iter().map(|round| Round { target: 2, ..round }));
    outcome
}

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::case::Case;
use super::goal;
use super::programs::Programs;

/// The cost of some walks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Sample {
    /// Processor time of the thread, the kernel's part included.
    pub processor_nanoseconds: u64,
    /// Wall-clock time.
    pub wall_nanoseconds: u64,
}

/// A sample of each round.
pub(super) type Samples = BTreeMap<Case, Vec<Sample>>;

/// Takes the times of all cases that have a goal, in turns. Each round begins with another case.
///
/// # Errors
/// If a program fails, or its output is not as expected.
pub(super) fn take(programs: &Programs, tree: &Path, rounds: u32) -> Result<Samples> {
    let mut cases: Vec<_> = goal::cases().into_iter().map(|(case, _)| case).collect();
    let mut samplers = BTreeMap::new();
    for case in &cases {
        let program = programs.of(case);
        if !samplers.contains_key(program) {
            samplers.insert(program, Sampler::start(program, tree)?);
        }
    }
    let mut samples = Samples::new();
    // The first round only fills caches.
    for round in 0..=rounds {
        for case in &cases {
            let sampler = samplers.get_mut(programs.of(case)).context("no program")?;
            let sample = sampler.sample(case).with_context(|| case.to_string())?;
            if round > 0 {
                samples.entry(*case).or_default().push(sample);
            }
        }
        cases.rotate_left(1);
    }
    Ok(samples)
}

/// Formats the additional cost of one over another, round by round, in percent.
pub(super) fn spread(one: &[Sample], other: &[Sample], of: impl Fn(&Sample) -> u64) -> String {
    let percent = |(one, other): (&Sample, &Sample)| goal::percent_more(of(one), of(other));
    let mut percents: Vec<f64> = one.iter().zip(other).map(percent).collect();
    percents.sort_by(f64::total_cmp);
    let (Some(least), Some(greatest)) = (percents.first(), percents.last()) else {
        return String::new();
    };
    let median = percents[percents.len() / 2];
    format!("{median:+5.1} % ({least:+.1} to {greatest:+.1})")
}

/// A running program that returns samples on request.
struct Sampler {
    child: Child,
    ask: Option<ChildStdin>,
    told: BufReader<ChildStdout>,
}

impl Sampler {
    fn start(program: &Path, tree: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["identity", "time"]).arg(tree).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| program.display().to_string())?;
        let (ask, told) = (child.stdin.take(), child.stdout.take().context("no output")?);
        Ok(Self { child, ask, told: BufReader::new(told) })
    }

    fn sample(&mut self, case: &Case) -> Result<Sample> {
        writeln!(self.ask.as_mut().context("no input")?, "{case}")?;
        let mut line = String::new();
        self.told.read_line(&mut line)?;
        serde_json::from_str(&line).context("no sample")
    }
}

impl Drop for Sampler {
    /// The program ends when its input ends.
    fn drop(&mut self) {
        drop(self.ask.take());
        let _ = self.child.wait();
    }
}

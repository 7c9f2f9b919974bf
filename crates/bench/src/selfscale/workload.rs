//! The benchmark as a workload of the suite.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::engine::{Engine, Times};
use super::{Axis, Finding, Patience, Recorded, Space, run};
use crate::suite::{Context, Parameter, ParameterKind, Parameters, Workload};

/// The workload `selfscale`.
#[derive(Debug, Clone, Copy)]
pub struct Selfscale;

/// Fewest batches of a workload, as Student's t is wide for fewer.
const BATCHES_MIN: usize = 5;

/// Largest half of the 95 % interval of throughput, as a part of it.
const SPREAD: f64 = 0.05;

const fn bytes(
    name: &'static str,
    about: &'static str,
    [paper, quick, modern]: [&'static str; 3],
) -> Parameter {
    Parameter { name, about, kind: ParameterKind::Bytes, paper, quick, modern }
}

const fn other(
    name: &'static str,
    about: &'static str,
    kind: ParameterKind,
    [paper, quick, modern]: [&'static str; 3],
) -> Parameter {
    Parameter { name, about, kind, paper, quick, modern }
}

/// Values for the machines of the papers, for a short run, and for machines of today.
const PARAMETERS: &[Parameter] = &[
    bytes("bytes-least", "Smallest working set (uniqueBytes)", ["1M", "1M", "16M"]),
    bytes("bytes-most", "Largest; let it pass the memory that caches", ["512M", "128M", "16G"]),
    bytes("size-least", "Smallest mean of request sizes (sizeMean)", ["1K", "1K", "4K"]),
    bytes("size-most", "Largest mean of request sizes", ["1M", "256K", "4M"]),
    other("process-most", "Most processes at once", ParameterKind::Count, ["8", "4", "32"]),
    other(
        "batch-seconds",
        "Time in operations of one batch",
        ParameterKind::Number,
        ["0.4", "0.03", "1"],
    ),
    other(
        "batches-max",
        "Batches of a workload at most; they end sooner where the 95 % interval is within 5 %",
        ParameterKind::Count,
        ["40", "12", "60"],
    ),
    other(
        "warm-up-seconds",
        "Longest warm-up; it ends sooner once the working set has been moved",
        ParameterKind::Number,
        ["10", "0.3", "60"],
    ),
    other(
        "checks",
        "Random workloads that are predicted and measured",
        ParameterKind::Count,
        ["20", "10", "30"],
    ),
];

impl Workload for Selfscale {
    fn name(&self) -> &'static str {
        "selfscale"
    }

    fn about(&self) -> &'static str {
        "Finds the workloads a system does well, its plateaus, and predicts any other workload"
    }

    fn origin(&self) -> &'static str {
        "Chen and Patterson 1994 (\"A New Approach to I/O Performance Evaluation\"), over NFS as \
         Byrd and Moser 2000. Five parameters describe a workload: uniqueBytes, sizeMean, \
         readFrac, seqFrac, processNum. Each is varied around the others' focal values, where \
         throughput reaches 75 % of its best. Over uniqueBytes throughput has plateaus, one for \
         each cache and the disk; each gets a family of graphs, and their shapes predict \
         workloads that were never measured. Random workloads that are measured as well say what \
         that is worth."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        Plan::of(parameters).map(drop)
    }

    /// The workload repeats batches itself, until each figure is precise enough.
    fn rounds(&self, _asked: u32) -> u32 {
        1
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let plan = Plan::of(context.parameters())?;
        let seed = context.seed();
        let mut engine = Engine::new(context, plan.times, plan.expected());
        let finding = run(&mut engine, &plan.space, plan.patience, (plan.checks, seed))?;
        engine.rest()?;
        keep(context, &finding);
        Ok(())
    }
}

/// The values of the parameters.
struct Plan {
    space: Space,
    patience: Patience,
    times: Times,
    checks: usize,
}

impl Plan {
    fn of(parameters: &Parameters) -> Result<Self> {
        let ends = |least: &str, most: &str| -> Result<(f64, f64)> {
            let found = (parameters.bytes(least)?, parameters.bytes(most)?);
            ensure!(0 < found.0 && found.0 <= found.1, "--{least} must be from 1 to --{most}");
            Ok((found.0 as f64, found.1 as f64))
        };
        let seconds = |name: &str| Ok::<_, anyhow::Error>(parameters.number(name)?.min(3600.0));
        let processes = parameters.count("process-most")?.max(1) as f64;
        let batches_max = (parameters.count("batches-max")? as usize).max(BATCHES_MIN);
        let times = Times {
            batch: Duration::from_secs_f64(seconds("batch-seconds")?.max(1e-3)),
            warm_up: Duration::from_secs_f64(seconds("warm-up-seconds")?),
        };
        Ok(Self {
            space: Space::new(
                ends("bytes-least", "bytes-most")?,
                ends("size-least", "size-most")?,
                processes,
            ),
            patience: Patience { batches_min: BATCHES_MIN, batches_max, spread: SPREAD },
            times,
            checks: parameters.count("checks")? as usize,
        })
    }

    /// About how many workloads will be measured: two turns of exploring, and three plateaus.
    fn expected(&self) -> usize {
        let turn: usize = Axis::ALL.iter().map(|axis| self.space.grid(*axis).len()).sum();
        let family: usize = Axis::ALL.iter().map(|axis| self.space.fine_grid(*axis).len()).sum();
        2 * turn + 3 * family + self.checks
    }
}

/// Stores the focal vector. The result of the check is not stored as a note: each reader computes
/// it again.
fn keep(context: &mut Context<'_>, finding: &Finding) {
    Recorded::choice(&finding.exploration).into_iter().for_each(|sample| context.keep(sample));
    if !finding.exploration.is_settled {
        context.note(
            "the focal vector had not settled when exploring ended: graphs go through the last",
        );
    }
}

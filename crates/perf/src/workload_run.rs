//! A run of one workload of `comity bench`, without its output.

use std::sync::Arc;

use anyhow::{Context, Result};
use comity_bench::runner::{Chosen, Plan, Resets, run};
use comity_bench::suite::{Interrupt, Parameters, Preset, SuiteOutcome, Workload};
use comity_bench::targets::{Options, Spec};
use comity_bench::workload;

/// Finds a workload, with its parameters of the paper.
///
/// # Errors
/// There is none of this name.
pub(crate) fn of_paper(name: &str) -> Result<(Arc<dyn Workload>, Parameters)> {
    let found = workload::all().into_iter().find(|it| it.name() == name);
    let found = found.with_context(|| format!("no workload {name}"))?;
    let parameters = Parameters::preset(found.parameters(), Preset::Paper);
    Ok((found, parameters))
}

/// Runs a workload against each target in turn, round after round.
///
/// # Errors
/// A target does not start, or fails an operation.
pub(crate) fn in_rounds(
    (workload, parameters): (Arc<dyn Workload>, Parameters),
    (targets, options): (Vec<Spec>, Options),
    rounds: u32,
) -> Result<SuiteOutcome> {
    let output = tempfile::tempdir()?;
    let plan = Plan {
        chosen: vec![Chosen { workload, parameters }],
        targets,
        options,
        rounds,
        limit: None,
        seed: 1,
        preset: Preset::Paper,
        here: false,
        keep: false,
        resume: false,
        output: output.path().join("result"),
        before_run: Vec::new(),
        resets: Resets::default(),
        quiet: true,
    };
    run(&plan, &Interrupt::default())
}

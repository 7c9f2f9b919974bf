//! `comity bench predict`: predicts a workload that was never measured, for each measured target.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::{Axis, Model, Point, Prediction, Recorded, SelfCheck};
use crate::number;
use crate::stdout::say;
use crate::suite::{Store, SuiteOutcome, bytes};

/// The workload to predict, and the result to predict it from.
#[derive(Debug, Args)]
pub struct Options {
    /// Results that hold the workload `selfscale`; all targets in all of them are predicted.
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// Distinct bytes read or written, as 64M. A parameter that is not given is as at the first
    /// result's focal point.
    #[arg(long, value_name = "BYTES", value_parser = size)]
    unique_bytes: Option<f64>,
    /// Mean size of a request, as 32K.
    #[arg(long, value_name = "BYTES", value_parser = size)]
    size_mean: Option<f64>,
    /// The part of the requests that are reads, from 0 to 1.
    #[arg(long, value_name = "PART", value_parser = part)]
    read_frac: Option<f64>,
    /// The part of the requests that follow the one before, from 0 to 1.
    #[arg(long, value_name = "PART", value_parser = part)]
    seq_frac: Option<f64>,
    /// Processes at once.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    process_num: Option<u32>,
    /// Give JSON instead of text.
    #[arg(long)]
    json: bool,
}

fn size(text: &str) -> Result<f64, String> {
    match bytes(text) {
        Ok(0) => Err("must be more than 0".to_owned()),
        Ok(count) => Ok(count as f64),
        Err(error) => Err(format!("{error:#}")),
    }
}

fn part(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not from 0 to 1");
    text.parse().ok().filter(|part| (0.0..=1.0).contains(part)).ok_or_else(wrong)
}

/// A target with its model.
struct PredictedTarget {
    result: PathBuf,
    target: String,
    model: Model,
    check: Option<SelfCheck>,
}

/// Prints the predictions.
///
/// # Errors
/// No result can be read, or none contains enough of the self-scaling benchmark.
pub fn command(options: &Options) -> Result<ExitCode> {
    let mut known = Vec::new();
    for path in &options.results {
        known.extend(models(path)?);
    }
    let [first, ..] = known.as_slice() else { bail!("no target to predict for") };
    let wanted = options.wanted();
    let text = if options.json { json(&known, &wanted)? } else { text(&known, first, &wanted) };
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl Options {
    fn wanted(&self) -> Vec<(Axis, f64)> {
        let processes = self.process_num.map(f64::from);
        let given = [self.unique_bytes, self.size_mean, self.read_frac, self.seq_frac, processes];
        let pairs = Axis::ALL.into_iter().zip(given);
        pairs.filter_map(|(axis, value)| value.map(|value| (axis, value))).collect()
    }
}

/// Predicts each of two results on the focal workload of the other, if both hold the self-scaling
/// benchmark; otherwise returns an empty text.
///
/// # Errors
/// A result cannot be read, or is damaged.
pub fn both(before: &Path, after: &Path) -> Result<String> {
    let has_it = |path: &Path| Ok::<_, anyhow::Error>(!recorded(&Store::read(path)?)?.is_empty());
    if !has_it(before)? || !has_it(after)? {
        return Ok(String::new());
    }
    let mut known = models(before)?;
    known.extend(models(after)?);
    Ok(known.first().map_or(String::new(), |first| text(&known, first, &[])))
}

/// The models of a result, one for each target.
fn models(path: &Path) -> Result<Vec<PredictedTarget>> {
    let outcome = Store::read(path)?;
    let place = path.display();
    let found: Result<Vec<PredictedTarget>> = recorded(&outcome)?
        .into_iter()
        .map(|(target, recorded)| {
            let model = recorded.model().with_context(|| {
                format!(
                    "{place}: selfscale ended on {target} before there was a graph; --resume it"
                )
            })?;
            let check = recorded.check(&model);
            Ok(PredictedTarget { result: path.to_path_buf(), target, model, check })
        })
        .collect();
    let found = found?;
    if found.is_empty() {
        bail!("{place} has no selfscale to predict from: `comity bench run selfscale` makes one");
    }
    Ok(found)
}

/// Returns the records of the self-scaling benchmark in a result, by target.
///
/// # Errors
/// Its samples are damaged.
pub fn recorded(outcome: &SuiteOutcome) -> Result<Vec<(String, Recorded)>> {
    let rounds = outcome.workload("selfscale").into_iter().flat_map(|found| &found.rounds);
    rounds
        .filter_map(|round| outcome.targets.get(round.target).map(|target| (target, round)))
        .map(|(target, round)| Ok((target.name.clone(), Recorded::of(&round.samples)?)))
        .collect()
}

/// The workloads to predict: the one asked for, or else the focal point of each model, so that each
/// of two results is predicted on both.
fn points(
    known: &[PredictedTarget],
    first: &PredictedTarget,
    wanted: &[(Axis, f64)],
) -> Vec<(String, Point)> {
    let own = |known: &PredictedTarget| {
        let family = &known.model.families()[0];
        (format!("focal point of {}", known.target), family.focal)
    };
    if wanted.is_empty() {
        return known.iter().map(own).collect();
    }
    let bytes = wanted.iter().find(|(axis, _)| *axis == Axis::UniqueBytes);
    let start = match bytes {
        Some((_, bytes)) => first.model.nearest(*bytes).focal,
        None => own(first).1,
    };
    let point = wanted.iter().fold(start, |point, (axis, value)| point.with(*axis, *value));
    vec![("as asked".to_owned(), point)]
}

fn text(known: &[PredictedTarget], first: &PredictedTarget, wanted: &[(Axis, f64)]) -> String {
    let mut out = String::new();
    for (name, point) in points(known, first, wanted) {
        let _ = writeln!(out, "workload, {name}:");
        let _ = writeln!(out, "  {point}");
        let base = first.model.predict(&point).throughput;
        for one in known {
            tell(&mut out, one, &one.model.predict(&point), base);
        }
    }
    out
}

fn tell(out: &mut String, known: &PredictedTarget, found: &Prediction, base: f64) {
    let throughput = number::bytes_per_second(found.throughput);
    let _ = writeln!(
        out,
        "  {} ({}): {throughput}, {:.2} times the first",
        known.target,
        known.result.display(),
        found.throughput / base
    );
    let family = &known.model.families()[found.family];
    let _ = writeln!(
        out,
        "    plateau {} of {}, from {} to {}; factors {}",
        found.family + 1,
        known.model.families().len(),
        number::bytes(family.plateau.low),
        number::bytes(family.plateau.high),
        factors(found)
    );
    for warning in caveats(known, found) {
        let _ = writeln!(out, "    note: {warning}");
    }
}

fn factors(found: &Prediction) -> String {
    let each = found.factors.iter().map(|(axis, factor)| format!("{} {factor:.2}", axis.title()));
    each.collect::<Vec<_>>().join(", ")
}

/// Warnings about the predictions.
fn caveats(known: &PredictedTarget, found: &Prediction) -> Vec<String> {
    let mut out = Vec::new();
    if found.is_between {
        out.push("between two plateaus, where predictions are bad".to_owned());
    }
    for axis in &found.beyond {
        out.push(format!("{} was not measured so far out: its end was taken", axis.title()));
    }
    match &known.check {
        None => out.push("the predictions of this result were never checked".to_owned()),
        Some(check) => {
            out.push(format!(
                "checked on {} random workloads: error {:.0} % in the median, {:.0} % at the 90th \
                 percentile",
                check.checks.len(),
                check.error_median * 100.0,
                check.error_p90 * 100.0
            ));
            out.extend(check.warnings.iter().cloned());
        }
    }
    out
}

fn json(known: &[PredictedTarget], wanted: &[(Axis, f64)]) -> Result<String> {
    let [first, ..] = known else { bail!("no target to predict for") };
    let mut list = Vec::new();
    for (name, point) in points(known, first, wanted) {
        for one in known {
            let found = one.model.predict(&point);
            let values = Axis::ALL.map(|axis| (axis.name(), point.get(axis)));
            list.push(serde_json::json!({
                "workload": name,
                "parameters": values.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
                "result": one.result,
                "target": one.target,
                "bytes_per_second": found.throughput,
                "plateau": found.family + 1,
                "between_plateaus": found.is_between,
                "error_median": one.check.as_ref().map(|check| check.error_median),
                "error_p90": one.check.as_ref().map(|check| check.error_p90),
                "notes": caveats(one, &found),
            }));
        }
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(&list)?))
}

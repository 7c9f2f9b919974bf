//! The comparison of figures of two results that belong together.

use anyhow::{Result, ensure};

use crate::report::aggregate::{self, Cell, Line};
use crate::statistics::Ratio;
use crate::suite::{Better, SuiteOutcome, Unit, WorkloadRecord};

/// A figure in both results.
#[derive(Debug, Clone)]
pub struct Row {
    /// The workload.
    pub workload: String,
    /// The target in the second result.
    pub target: String,
    /// The name of the measure.
    pub figure: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The figure in the first result.
    pub before: Cell,
    /// The figure in the second result.
    pub after: Cell,
    /// The gain of the second over the first, by Welch's interval, as rounds of two runs are not
    /// pairs.
    pub gain: Ratio,
}

/// Two results beside each other.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// All figures that both have.
    pub rows: Vec<Row>,
    /// The figures that could not be compared, with the reasons.
    pub left_out: Vec<String>,
}

impl Row {
    /// Returns the description of the row in a line.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} on {}: {}", self.workload, self.target, self.figure)
    }

    /// Returns whether the second is worse by more than `part`, beyond chance.
    #[must_use]
    pub fn is_worse_by(&self, part: f64) -> bool {
        self.gain.is_distinct() && self.gain.interval.center < 1.0 - part
    }
}

/// Puts the figures of two results side by side. Targets are matched by name; if each result has a
/// single target, these two are matched.
///
/// # Errors
/// The two have no figure in common.
pub fn compare(before: &SuiteOutcome, after: &SuiteOutcome) -> Result<Comparison> {
    let mut found = Comparison { rows: Vec::new(), left_out: Vec::new() };
    for record in after.workloads.iter().filter(|record| record.name != "selfscale") {
        match before.workload(&record.name) {
            None => found.left_out.push(format!("{}: only in the second", record.name)),
            Some(old) if old.parameters != record.parameters => {
                found.left_out.push(format!("{}: other parameters", record.name));
            }
            Some(old) => workload(&mut found, (before, old), (after, record)),
        }
    }
    let has_any = !found.rows.is_empty() || both_scale(before, after);
    ensure!(has_any, "the two have no figure in common: {}", found.left_out.join("; "));
    Ok(found)
}

fn both_scale(before: &SuiteOutcome, after: &SuiteOutcome) -> bool {
    before.workload("selfscale").is_some() && after.workload("selfscale").is_some()
}

type Part<'a> = (&'a SuiteOutcome, &'a WorkloadRecord);

fn workload(found: &mut Comparison, (before, old): Part<'_>, (after, new): Part<'_>) {
    let old_lines = aggregate::lines(before, old, &[]);
    let new_lines = aggregate::lines(after, new, &[]);
    for (target, record) in after.targets.iter().enumerate() {
        let Some(partner) = partner(before, after, &record.name) else {
            let text = format!("{} on {}: only in the second", new.name, record.name);
            found.left_out.push(text);
            continue;
        };
        for line in &new_lines {
            let alike = old_lines.iter().find(|known| is_same(known, line));
            let before = alike.and_then(|known| known.cells.get(partner)?.clone());
            let cells = before.zip(line.cells.get(target).cloned().flatten());
            found.rows.extend(cells.and_then(|cells| row((&new.name, &record.name), line, cells)));
        }
    }
}

fn partner(before: &SuiteOutcome, after: &SuiteOutcome, name: &str) -> Option<usize> {
    if before.targets.len() == 1 && after.targets.len() == 1 {
        return Some(0);
    }
    before.targets.iter().position(|target| target.name == name)
}

fn is_same(a: &Line, b: &Line) -> bool {
    a.metric == b.metric && a.unit == b.unit && a.at == b.at
}

fn row(
    (workload, target): (&str, &str),
    line: &Line,
    (before, after): (Cell, Cell),
) -> Option<Row> {
    let ratio = Ratio::between(&after.values(), &before.values())?;
    let gain = match line.unit.better() {
        Better::Higher => ratio,
        Better::Lower => ratio.inverse(),
        Better::Neither => return None,
    };
    Some(Row {
        workload: workload.to_owned(),
        target: target.to_owned(),
        figure: line.label(),
        unit: line.unit,
        before,
        after,
        gain,
    })
}

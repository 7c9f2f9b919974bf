//! Arranges a result: every figure with its samples by target, and a verdict on their quality.

use std::collections::BTreeMap;

use crate::number;
use crate::statistics::{CONFIDENCE, Interval, Ratio, Summary, Verdict, mean, mean_interval};
use crate::suite::{Better, Figure, Place, Sample, SuiteOutcome, Unit, WorkloadRecord};

/// All measurements of one kind under the same circumstances, on all targets.
#[derive(Debug, Clone)]
pub struct Line {
    /// The name of the measure.
    pub metric: String,
    /// The parameters of the measurement.
    pub at: BTreeMap<String, Place>,
    /// The unit of the values.
    pub unit: Unit,
    /// The figure on each target, in the order of the result; `None` if it was not measured.
    pub cells: Vec<Option<Cell>>,
    /// The ratio of each target to the first, by pairs; `None` for the first.
    pub ratios: Vec<Option<Ratio>>,
    /// The figures of the original works.
    pub history: Vec<Figure>,
}

/// A figure on one target.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The value of each round; the mean if the round has several samples.
    pub rounds: BTreeMap<u32, f64>,
    /// All rounds.
    pub summary: Summary,
    /// The mean with its interval; `None` for a single round.
    pub interval: Option<Interval>,
    /// The verdict on quoting it.
    pub verdict: Verdict,
}

impl Line {
    /// Returns the name of the line in a few words.
    #[must_use]
    pub fn label(&self) -> String {
        let at = self.circumstances(&[]);
        if at.is_empty() { self.metric.clone() } else { format!("{}, {at}", self.metric) }
    }

    /// The parameters of the measurement, without those that the report shows elsewhere.
    #[must_use]
    pub fn circumstances(&self, without: &[&str]) -> String {
        let told = self.at.iter().filter(|(name, _)| !without.contains(&name.as_str()));
        let (mut words, mut numbers) = (Vec::new(), Vec::new());
        for (name, place) in told {
            match place {
                Place::Word(word) => words.push(word.clone()),
                Place::Number(_) => numbers.push(format!("{name} {}", number::place(place))),
            }
        }
        // Words come first: they say more than numbers, and a long text is cut at its end.
        words.append(&mut numbers);
        words.join(", ")
    }

    /// Returns the gain of a target over the first, by pairs; `None` for a unit in which neither
    /// direction is better.
    #[must_use]
    pub fn gain(&self, target: usize) -> Option<Ratio> {
        let ratio = self.ratios.get(target).copied().flatten()?;
        match self.unit.better() {
            Better::Higher => Some(ratio),
            Better::Lower => Some(ratio.inverse()),
            Better::Neither => None,
        }
    }

    /// Returns whether some target has enough samples to show how much they vary.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.cells.iter().flatten().any(|cell| !matches!(cell.verdict, Verdict::Few { .. }))
    }

    /// Returns whether some target's samples vary more than they may.
    #[must_use]
    pub fn is_noisy(&self) -> bool {
        self.cells.iter().flatten().any(|cell| matches!(cell.verdict, Verdict::Noisy { .. }))
    }
}

impl Cell {
    fn of(rounds: BTreeMap<u32, f64>) -> Option<Self> {
        let values: Vec<f64> = rounds.values().copied().collect();
        Some(Self {
            summary: Summary::of(&values)?,
            interval: mean_interval(&values, CONFIDENCE),
            verdict: Verdict::of(&values),
            rounds,
        })
    }

    /// The values by round.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        self.rounds.values().copied().collect()
    }
}

/// Returns the gain of a target over the first over all lines: the geometric mean of the gains in
/// each round, then the mean of the rounds with its interval. `None` if nothing can be compared.
#[must_use]
pub fn overall(lines: &[Line], target: usize) -> Option<Ratio> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for line in lines {
        for (round, gain) in gains(line, target).into_iter().flatten() {
            rounds.entry(round).or_default().push(gain.ln());
        }
    }
    let means: Vec<f64> = rounds.values().filter_map(|gains| mean(gains)).map(f64::exp).collect();
    Ratio::of(&means, &vec![1.0; means.len()])
}

/// The ratio of each round: how many times better than the first a target is.
fn gains(line: &Line, target: usize) -> Option<Vec<(u32, f64)>> {
    let first = line.cells.first()?.as_ref()?;
    let cell = line.cells.get(target)?.as_ref()?;
    let both = cell.rounds.iter().filter_map(|(round, a)| {
        let b = first.rounds.get(round).filter(|b| **b > 0.0 && *a > 0.0)?;
        match line.unit.better() {
            Better::Higher => Some((*round, a / b)),
            Better::Lower => Some((*round, b / a)),
            Better::Neither => None,
        }
    });
    Some(both.collect())
}

/// Samples with the same metric, circumstances and unit belong together.
type Key = (String, String, Unit);

fn key(sample: &Sample) -> Key {
    let at: Vec<String> = sample.at.iter().map(|(name, place)| format!("{name}={place}")).collect();
    (sample.metric.clone(), at.join(" "), sample.unit)
}

/// The lines of a workload, in the order of their first samples; `history` are the figures of the
/// original.
#[must_use]
pub fn lines(outcome: &SuiteOutcome, workload: &WorkloadRecord, history: &[Figure]) -> Vec<Line> {
    let targets = outcome.targets.len();
    let mut order: Vec<(Key, &Sample)> = Vec::new();
    let mut values: BTreeMap<Key, Vec<BTreeMap<u32, Vec<f64>>>> = BTreeMap::new();
    for round in workload.rounds.iter().filter(|round| round.target < targets) {
        for sample in &round.samples {
            let key = key(sample);
            if !values.contains_key(&key) {
                order.push((key.clone(), sample));
            }
            let cells = values.entry(key).or_insert_with(|| vec![BTreeMap::new(); targets]);
            cells[round.target].entry(round.round).or_default().push(sample.value);
        }
    }
    let line = |(key, sample): (Key, &Sample)| {
        let cells = values.remove(&key).unwrap_or_default();
        line(sample, cells, history)
    };
    order.into_iter().map(line).collect()
}

fn line(sample: &Sample, cells: Vec<BTreeMap<u32, Vec<f64>>>, history: &[Figure]) -> Line {
    let by_round = |cell: BTreeMap<u32, Vec<f64>>| -> BTreeMap<u32, f64> {
        cell.into_iter().filter_map(|(round, each)| Some((round, mean(&each)?))).collect()
    };
    let cells: Vec<_> = cells.into_iter().map(|cell| Cell::of(by_round(cell))).collect();
    let first = cells.first().cloned().flatten();
    let against = |cell: &Option<Cell>| pairs(cell.as_ref()?, first.as_ref()?);
    let mut ratios: Vec<_> = cells.iter().map(against).collect();
    ratios.first_mut().into_iter().for_each(|first| *first = None);
    let (metric, at, unit) = (sample.metric.clone(), sample.at.clone(), sample.unit);
    let history = history.iter().filter(|figure| belongs(figure, sample)).copied().collect();
    Line { metric, at, unit, cells, ratios, history }
}

/// The ratio of two cells over the rounds in which both were measured.
fn pairs(measured: &Cell, base: &Cell) -> Option<Ratio> {
    let both = measured.rounds.iter().filter_map(|(round, a)| Some((*a, *base.rounds.get(round)?)));
    let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
    Ratio::of(&a, &b)
}

fn belongs(figure: &Figure, sample: &Sample) -> bool {
    let at: Vec<(&str, String)> =
        sample.at.iter().map(|(name, place)| (name.as_str(), place.to_string())).collect();
    let same = |(name, value): &(&str, &str)| at.iter().any(|(n, v)| n == name && v == value);
    figure.metric == sample.metric
        && figure.unit == sample.unit
        && figure.at.len() == at.len()
        && figure.at.iter().all(same)
}

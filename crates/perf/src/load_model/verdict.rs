use comity_bench::report::Compared;
use comity_bench::statistics::mean;
use comity_load::{Prediction, Ratio};

use super::LoadStep;

/// Least part of the variance that a prediction has to explain if times vary with the consumer.
const R_SQUARED_LEAST: f64 = 0.9;
/// Largest relative error of predicted times.
const ERROR_MOST: f64 = 0.2;
/// If the ratio of a resource varies by less, the consumer does not use this resource.
const RATIO_VARIES: f64 = 0.1;
/// Times that differ by less than this part count as equal, so that there is nothing to explain.
const VARIES: f64 = 0.15;

/// The prediction for one benchmark under one consumer, and how good it is.
pub(super) struct Fit {
    /// Microseconds for each call without the consumer, and with the consumer at full load.
    idle: f64,
    full: f64,
    /// The mean time of all fitted calls, in microseconds.
    constant: f64,
    /// The resource and the prediction by it; `None` if the times do not vary with the consumer.
    kept: Option<(String, Prediction)>,
    /// The mean error of the prediction of the last round, as a part of the measured times.
    error: f64,
    /// Resources whose ratios do not explain the times.
    dropped: usize,
}

impl Fit {
    /// Fits benchmark number `at` to all rounds but the last, which is then predicted.
    pub(super) fn of(rounds: &[Vec<LoadStep>], at: usize) -> Self {
        let (last, first) = rounds.split_last().map_or((&[][..], rounds), |(l, f)| (&l[..], f));
        let fitted: Vec<&LoadStep> = first.iter().flatten().collect();
        let times: Vec<f64> = fitted.iter().map(|step| step.times[at]).collect();
        let by_level = times_by_level(rounds, at);
        let (kept, dropped) = best(&fitted, at);
        let mut fit = Self {
            idle: by_level.first().copied().unwrap_or(f64::NAN),
            full: by_level.last().copied().unwrap_or(f64::NAN),
            constant: mean(&times).unwrap_or(f64::NAN),
            kept: kept.filter(|_| vary(&times_by_level(first, at))),
            error: f64::NAN,
            dropped,
        };
        let error_of = |step: &LoadStep| (fit.predicted(step) / step.times[at] - 1.0).abs();
        let errors: Vec<f64> = last.iter().map(error_of).collect();
        fit.error = mean(&errors).unwrap_or(f64::NAN);
        fit
    }

    /// Returns the time of a call that is predicted from the loads of a step, in microseconds.
    fn predicted(&self, step: &LoadStep) -> f64 {
        let by_ratio = |(name, line): &(String, Prediction)| {
            line.time(step.loads.0.get(name).copied().unwrap_or(Ratio::IDLE))
        };
        self.kept.as_ref().map_or(self.constant, by_ratio)
    }

    /// Returns the points of benchmark number `at` in a round: the parts of the resource that the
    /// consumer used, and the times of a call as multiples of the time without the consumer.
    pub(super) fn compared(&self, name: &str, at: usize, round: &[LoadStep]) -> Compared {
        let points = |time: &dyn Fn(&LoadStep) -> f64| {
            round.iter().map(|step| (step.level, time(step) / self.idle)).collect()
        };
        Compared {
            name: name.to_owned(),
            measured: points(&|step| step.times[at]),
            predicted: points(&|step| self.predicted(step)),
        }
    }

    /// Returns whether the prediction is as good as it must be.
    pub(super) fn is_met(&self) -> bool {
        let explains = |(_, line): &(String, Prediction)| line.r_squared() >= R_SQUARED_LEAST;
        self.error <= ERROR_MOST && self.kept.as_ref().is_none_or(explains)
    }

    pub(super) fn print(&self, consumer: &str, benchmark: &str) {
        let (term, r_squared) = self.kept.as_ref().map_or_else(
            || ("does not vary".to_owned(), "-".to_owned()),
            |(name, line)| {
                (format!("{name}: {}", line.term().name()), format!("{:.2}", line.r_squared()))
            },
        );
        let met = if self.is_met() { "met" } else { "MISSED" };
        println!(
            "{consumer:<8} {benchmark:<9} {:>9.1} {:>9.1}  {term:<32} {r_squared:>5} {:>7.0} % \
             {:>8}  {met}",
            self.idle,
            self.full,
            self.error * 100.0,
            self.dropped,
        );
    }
}

/// Returns the resource that explains most of the times, and the number of the others. A resource
/// counts if its ratio varies and calls take longer the more of it is used: a ratio that falls,
/// such as the server's own part of the processors, is a consequence.
fn best(steps: &[&LoadStep], at: usize) -> (Option<(String, Prediction)>, usize) {
    let names = steps.first().map(|step| step.loads.0.keys().cloned().collect::<Vec<_>>());
    let fit = |name: String| {
        let samples: Vec<(Ratio, f64)> = steps
            .iter()
            .filter_map(|step| Some((*step.loads.0.get(&name)?, step.times[at])))
            .collect();
        let fitted = Prediction::fit(&samples)
            .filter(|line| varies(&samples) && line.time(Ratio::FULL) > line.time(Ratio::IDLE));
        Some((name, fitted?))
    };
    let names = names.unwrap_or_default();
    let all = names.len();
    let fitted = names.into_iter().filter_map(fit);
    let kept = fitted.max_by(|(_, a), (_, b)| a.r_squared().total_cmp(&b.r_squared()));
    (kept, all.saturating_sub(1))
}

/// Returns the mean time of a call of benchmark number `at` in each step of the rounds.
fn times_by_level(rounds: &[Vec<LoadStep>], at: usize) -> Vec<f64> {
    let steps = rounds.iter().map(Vec::len).min().unwrap_or_default();
    let of_step = |step: usize| {
        let times: Vec<f64> = rounds.iter().map(|round| round[step].times[at]).collect();
        mean(&times).unwrap_or(f64::NAN)
    };
    (0..steps).map(of_step).collect()
}

/// Returns whether the longest of some times is longer than the shortest by more than noise.
fn vary(times: &[f64]) -> bool {
    let longest = times.iter().copied().fold(0.0, f64::max);
    longest / times.iter().copied().fold(f64::INFINITY, f64::min) - 1.0 > VARIES
}

fn varies(samples: &[(Ratio, f64)]) -> bool {
    let ratios = || samples.iter().map(|(ratio, _)| ratio.get());
    ratios().fold(0.0, f64::max) - ratios().fold(1.0, f64::min) >= RATIO_VARIES
}

/// Prints the head of the table.
pub(super) fn header() {
    println!(
        "Time of a call predicted from the load of a resource: R2 at least {R_SQUARED_LEAST},"
    );
    println!("error of a round that was not fitted at most {:.0} %.", ERROR_MOST * 100.0);
    println!();
    println!(
        "{:<8} {:<9} {:>9} {:>9}  {:<32} {:>5} {:>9} {:>8}",
        "consumer", "call", "idle, us", "full, us", "term that is kept", "R2", "error", "dropped"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_model::loads::Loads;

    /// Rounds in which a call takes `time` of the ratio of the processor.
    fn rounds(time: impl Fn(f64, usize) -> f64) -> Vec<Vec<LoadStep>> {
        let step = |used: f64, round| {
            let loads = [
                ("memory".to_owned(), Ratio::of(0.5, 1.0)),
                ("processor".to_owned(), Ratio::of(used, 1.0)),
            ];
            LoadStep { level: used, loads: Loads(loads.into()), times: vec![time(used, round)] }
        };
        (0..3).map(|round| [0.0, 0.5, 1.0].map(|used| step(used, round)).into()).collect()
    }

    #[test]
    fn a_resource_that_explains_the_times_is_kept_and_predicts_the_last_round() {
        let verdict = Fit::of(&rounds(|used, _| 10.0 + 10.0 * used), 0);
        assert_eq!(verdict.kept.as_ref().unwrap().0, "processor");
        assert!(verdict.is_met() && verdict.error < 1e-9 && verdict.dropped == 1);
    }

    #[test]
    fn a_last_round_unlike_the_others_is_missed() {
        let slower =
            |used: f64, round: usize| (10.0 + 10.0 * used) * if round == 2 { 1.5 } else { 1.0 };
        assert!(!Fit::of(&rounds(slower), 0).is_met());
    }

    #[test]
    fn the_last_round_is_drawn_with_its_prediction() {
        let rounds = rounds(|used, round| 10.0 + 10.0 * used + if round == 2 { 1.0 } else { 0.0 });
        let Compared { measured, predicted, .. } =
            Fit::of(&rounds, 0).compared("READ", 0, &rounds[2]);
        let idle = 31.0 / 3.0;
        assert_eq!(measured, [(0.0, 11.0 / idle), (0.5, 16.0 / idle), (1.0, 21.0 / idle)]);
        let expected = [10.0, 15.0, 20.0].map(|time| time / idle);
        let close = |(point, time): (&(f64, f64), f64)| (point.1 - time).abs() < 1e-9;
        assert!(predicted.iter().zip(expected).all(close), "{predicted:?}");
    }

    #[test]
    fn times_that_do_not_vary_need_no_resource() {
        let verdict = Fit::of(&rounds(|_, _| 10.0), 0);
        assert!(verdict.is_met() && verdict.kept.is_none());
    }
}

use std::collections::BTreeMap;

use super::case::{Case, Configuration, Files, Part};
use super::time::{Samples, spread};

/// A bound for the cost of a configuration compared with another, in instructions of a walk.
struct Goal {
    what: &'static str,
    case: Case,
    base: Case,
    /// Most percent by which the cost may exceed that of the other configuration.
    percent_max: f64,
    /// The figure of the paper, in percent of time.
    paper: f64,
}

use Configuration::{Clk, Mnu, Rmap, RmapClk, Van};
use Files::{Mixed, Own};

const GOALS: &[Goal] = &[
    goal("code present, not used", (Mnu, 1000, Mixed), (Van, 1000, Mixed), (1.0, 17.6)),
    goal("1,000 entries mapped", (Rmap, 1000, Mixed), (Mnu, 1000, Mixed), (2.0, 18.1)),
    goal("100,000 entries mapped", (Rmap, 100_000, Mixed), (Mnu, 1000, Mixed), (2.0, 18.1)),
    goal("from 10 to 1,000 entries", (Rmap, 1000, Mixed), (Rmap, 10, Mixed), (1.0, 13.6)),
    goal("cloak +000, all visible", (Clk, 1000, Own), (Mnu, 1000, Own), (5.0, 30.3)),
    goal("cloak, others' files seen", (Clk, 1000, Mixed), (Mnu, 1000, Mixed), (5.0, 30.3)),
    goal("both, the caller's own", (RmapClk, 1000, Own), (Van, 1000, Own), (7.0, 72.3)),
    goal("both, others' files seen", (RmapClk, 1000, Mixed), (Van, 1000, Mixed), (7.0, 72.3)),
];

type Short = (Configuration, u32, Files);

const fn goal(
    what: &'static str,
    (configuration, entries, files): Short,
    base: Short,
    (percent_max, paper): (f64, f64),
) -> Goal {
    let case = Case::new(configuration, entries, files);
    let base = Case::new(base.0, base.1, base.2);
    Goal { what, case, base, percent_max, paper }
}

/// Returns the cases that the judgement needs.
pub(super) fn cases() -> Vec<(Case, Part)> {
    let mut cases: Vec<_> = GOALS.iter().flat_map(|goal| [goal.case, goal.base]).collect();
    cases.sort_unstable();
    cases.dedup();
    cases.into_iter().map(|case| (case, Part::Walk)).collect()
}

/// Prints the result for each goal, and returns whether all goals are reached.
pub(super) fn judge(counts: &BTreeMap<(Case, Part), u64>) -> bool {
    println!("instructions of an ls -lR of 1,000 files     against   more      bound   2002");
    let count = |case: &Case| counts.get(&(*case, Part::Walk)).copied().unwrap_or_default();
    GOALS.iter().fold(true, |all, goal| {
        let percent = percent_more(count(&goal.case), count(&goal.base));
        let is_held = percent < goal.percent_max;
        println!(
            "{:8}{:27} {:>10}   {percent:+6.2} %   <{} %   {:4.1} %   {}",
            goal.case.configuration,
            goal.what,
            format!("{} {}", goal.base.configuration, goal.base.entries),
            goal.percent_max,
            goal.paper,
            if is_held { "met" } else { "MISSED" },
        );
        all && is_held
    })
}

/// Prints the difference of each goal in processor and wall time.
pub(super) fn times(samples: &Samples) {
    println!("\ntime: median of the rounds (least to greatest)              against");
    for goal in GOALS {
        let (Some(own), Some(base)) = (samples.get(&goal.case), samples.get(&goal.base)) else {
            continue;
        };
        println!(
            "{:8}{:27} {:>10}   processor {}   wall {}   2002 {:4.1} %",
            goal.case.configuration,
            goal.what,
            format!("{} {}", goal.base.configuration, goal.base.entries),
            spread(own, base, |sample| sample.processor_nanoseconds),
            spread(own, base, |sample| sample.wall_nanoseconds),
            goal.paper,
        );
    }
}

/// Returns the difference between the two in percent of the other.
pub(super) fn percent_more(one: u64, other: u64) -> f64 {
    (one as f64 - other as f64) * 100.0 / other as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_that_has_grown_is_reported() {
        let even: BTreeMap<_, _> = cases().into_iter().map(|case| (case, 1_000_000)).collect();
        assert!(judge(&even));
        for (at, (case, part)) in cases().into_iter().enumerate() {
            let mut counts = even.clone();
            counts.insert((case, part), 1_340_000);
            let is_base = GOALS.iter().all(|goal| goal.case != case);
            assert_eq!(judge(&counts), is_base, "case {at}");
        }
    }

    #[test]
    fn an_operation_that_was_not_counted_reaches_no_goal() {
        assert!(!judge(&BTreeMap::new()));
    }
}

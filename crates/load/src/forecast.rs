use std::fmt;
use std::time::Duration;

use crate::limits::{FEW_CALLS, GAIN_LEAST, GAIN_OF_ALL_LEAST, STALLED};
use crate::server_load::{Demand, ServerLoad};

/// The predicted change of calls if clients move from one server to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// The part by which the calls of the clients that move get shorter; it is negative if they get
    /// longer.
    pub moved: f64,
    /// The same for the calls of those that stay.
    pub staying: f64,
    /// The same for the calls at the other server before the move.
    pub there: f64,
    /// The same for all calls together.
    pub all: f64,
    /// Why the prediction may be wrong.
    pub doubts: Vec<Doubt>,
}

/// A reason why a prediction may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// This server has run for less than a minute.
    NewHere,
    /// The other server has run for less than a minute.
    NewThere,
    /// Programs here wait for storage.
    StorageHere,
    /// The processors of this server are not known.
    ProcessorsHere,
    /// The processors of the other server are not known.
    ProcessorsThere,
    /// The lines of this server are known, and those of the other are not.
    LinesThere,
    /// This server has several lines.
    SeveralLinesHere,
    /// The other server has several lines.
    SeveralLinesThere,
    /// Nobody has called this server.
    NoCalls,
    /// The clients that would move make few of the calls.
    FewCalls,
}

impl Forecast {
    /// Predicts what changes if the clients with this demand move from `here`, of which they are a
    /// part, to `there`.
    #[must_use]
    pub fn new(here: &ServerLoad, there: &ServerLoad, demand: Demand) -> Self {
        let (left, joined) = (here.without(demand), there.with(demand));
        let [before, before_there, after, after_there] =
            [here, there, &left, &joined].map(ServerLoad::slowdown);
        let [all, moving, calls_there] =
            [here.own, demand, there.own].map(|demand| demand.rates.calls);
        let sum_before = all * before + calls_there * before_there;
        let sum_after = left.own.rates.calls * after + (moving + calls_there) * after_there;
        Self {
            moved: shorter(before, after_there),
            staying: shorter(before, after),
            there: shorter(before_there, after_there),
            all: if sum_before > 0.0 { shorter(sum_before, sum_after) } else { 0.0 },
            doubts: doubts(here, there, demand),
        }
    }

    /// Returns the larger one of the parts by which the calls that move, and all calls together,
    /// get shorter.
    #[must_use]
    pub fn gain(&self) -> f64 {
        self.moved.max(self.all)
    }

    /// Returns whether the move should be made: some calls get noticeably shorter, and all calls
    /// together get shorter, too. By the same prediction, the move back then does not pay.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.all >= GAIN_OF_ALL_LEAST && self.gain() >= GAIN_LEAST
    }
}

fn shorter(before: f64, after: f64) -> f64 {
    1.0 - after / before
}

fn doubts(here: &ServerLoad, there: &ServerLoad, demand: Demand) -> Vec<Doubt> {
    let is_new = |load: &ServerLoad| load.sampled < Duration::from_secs(60);
    let is_known = |capacity: f64| capacity > 0.0;
    let (lines, calls) = (|load: &ServerLoad| load.lines > 0, here.own.rates.calls);
    let doubts = [
        (is_new(here), Doubt::NewHere),
        (is_new(there), Doubt::NewThere),
        (here.storage_stall.get() >= STALLED, Doubt::StorageHere),
        (!is_known(here.processors.capacity), Doubt::ProcessorsHere),
        (!is_known(there.processors.capacity), Doubt::ProcessorsThere),
        (lines(here) && !lines(there), Doubt::LinesThere),
        (here.lines > 1, Doubt::SeveralLinesHere),
        (there.lines > 1, Doubt::SeveralLinesThere),
        (calls <= 0.0, Doubt::NoCalls),
        (calls > 0.0 && demand.rates.calls < FEW_CALLS * calls, Doubt::FewCalls),
    ];
    doubts.into_iter().filter_map(|(is_so, doubt)| is_so.then_some(doubt)).collect()
}

impl fmt::Display for Doubt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NewHere => "this server has run for less than a minute",
            Self::NewThere => "the other server has run for less than a minute",
            Self::StorageHere => {
                "programs here wait for storage, and a move does not make it faster"
            }
            Self::ProcessorsHere => "this server does not know its processors",
            Self::ProcessorsThere => "the other server does not know its processors",
            Self::LinesThere => "the other server does not know what its lines can carry",
            Self::SeveralLinesHere => {
                "this server has several lines, and which of them clients use is not known"
            }
            Self::SeveralLinesThere => {
                "the other server has several lines, and which of them clients would use is not \
                 known"
            }
            Self::NoCalls => "nobody calls this server",
            Self::FewCalls => "these exports get less than a hundredth of the calls",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ratio::Ratio;
    use crate::server_load::Amount;
    use crate::server_load::tests::busy;
    use crate::shares::Rates;

    fn forecast(here: &ServerLoad, there: &ServerLoad, part: f64) -> Forecast {
        Forecast::new(here, there, here.own.part(Ratio::of(part, 1.0)))
    }

    /// A server that alone uses this part of its processor, and one that nobody uses.
    fn alone(part: f64) -> [ServerLoad; 2] {
        let mut here = busy(part, 1.0);
        here.own.processor = part;
        [here, ServerLoad { own: Demand::default(), ..busy(0.0, 1.0) }]
    }

    /// Other programs use 80 % of the processor.
    #[test]
    fn a_move_away_from_busy_programs_pays() {
        let here =
            ServerLoad { own: Demand { processor: 0.0, ..busy(0.0, 1.0).own }, ..busy(0.8, 1.0) };
        let found = forecast(&here, &busy(0.0, 1.0), 1.0);
        // From 1.8 to 1.
        assert!((found.moved - 0.8 / 1.8).abs() < 1e-9 && found.pays(), "{found:?}");
        assert_eq!(found.doubts, []);
    }

    /// The clients that move are those that make the server busy: nobody gains.
    #[test]
    fn a_move_of_all_that_a_server_does_pays_nobody() {
        let [here, there] = alone(0.8);
        let found = forecast(&here, &there, 1.0);
        assert!(found.all.abs() < 1e-9 && !found.pays(), "{found:?}");
    }

    /// Two exports make one server busy: with one at each server, all calls get shorter.
    #[test]
    fn half_of_the_work_at_each_server_helps_all() {
        let [here, there] = alone(0.9);
        let found = forecast(&here, &there, 0.5);
        assert!((found.moved - found.staying).abs() < 1e-9);
        // From 1.9 to 1.45.
        assert!((found.all - 0.45 / 1.9).abs() < 1e-9, "{found:?}");
    }

    /// A client with few calls gains, and the many that stay neither gain nor lose.
    #[test]
    fn a_move_that_helps_few_and_harms_nobody_pays() {
        let here = busy(0.9, 1.0);
        let found = forecast(&here, &ServerLoad { own: Demand::default(), ..busy(0.1, 1.0) }, 0.01);
        assert!(found.all < 0.02 && found.moved > 0.3 && found.pays(), "{found:?}");
        assert_eq!(found.doubts, []);
        let few = forecast(&here, &busy(0.1, 1.0), 0.009);
        assert_eq!(few.doubts, [Doubt::FewCalls]);
    }

    #[test]
    fn a_gain_of_some_that_is_a_loss_of_many_pays_not() {
        let here = busy(0.9, 1.0);
        let mut there = busy(0.4, 1.0);
        there.own.rates.calls = 1e6;
        let found = forecast(&here, &there, 0.5);
        assert!(found.moved > 0.1 && found.there < -0.1 && !found.pays(), "{found:?}");
    }

    #[test]
    fn a_full_line_counts_by_what_the_line_of_the_other_can_carry() {
        let line = |used, capacity| Amount { used, capacity };
        let with = |send| ServerLoad { send, lines: 1, ..busy(0.1, 1.0) };
        let here = with(line(0.9e6, 1e6));
        let wider = with(line(0.9e6, 1e7));
        let narrower = with(line(0.0, 0.5e6));
        assert!(forecast(&here, &wider, 0.5).pays());
        assert!(!forecast(&here, &narrower, 0.5).pays());
        let doubts = |there: &ServerLoad| forecast(&here, there, 0.5).doubts;
        assert_eq!(doubts(&busy(0.1, 1.0)), [Doubt::LinesThere]);
        assert_eq!(doubts(&ServerLoad { lines: 2, ..wider }), [Doubt::SeveralLinesThere]);
    }

    #[test]
    fn reasons_for_doubt_are_named() {
        let mut here = busy(0.5, 1.0);
        here.storage_stall = Ratio::of(0.5, 1.0);
        here.own = Demand::default();
        let found = forecast(&here, &ServerLoad::default(), 1.0);
        let expected =
            [Doubt::NewThere, Doubt::StorageHere, Doubt::ProcessorsThere, Doubt::NoCalls];
        assert_eq!(found.doubts, expected);
        assert!(!found.pays());
    }

    fn any_load() -> impl Strategy<Value = ServerLoad> {
        let part = || 0.0..1.0_f64;
        (part(), part(), 1_u32..64, 1.0..1e6_f64).prop_map(|(used, own, processors, calls)| {
            let mut load = busy(used, processors.into());
            load.own.processor = load.processors.used * own;
            load.own.rates = Rates { calls, ..load.own.rates };
            load
        })
    }

    proptest! {
        /// A move and the move back cancel each other out, so that two servers that ask in turn
        /// cannot both gain by moving the same clients to and fro.
        #[test]
        fn a_move_and_the_move_back_do_not_both_pay(
            here in any_load(), there in any_load(), part in 0.0..1.0_f64
        ) {
            let demand = here.own.part(Ratio::of(part, 1.0));
            let there_after = there.with(demand);
            let back = Forecast::new(&there_after, &here.without(demand), demand);
            let found = Forecast::new(&here, &there, demand);
            prop_assert!(!(found.pays() && back.pays()), "{found:?} {back:?}");
            let product = (1.0 - found.all) * (1.0 - back.all);
            prop_assert!((product - 1.0).abs() < 1e-6, "{found:?} {back:?}");
        }
    }
}

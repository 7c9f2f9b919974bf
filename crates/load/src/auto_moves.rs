use std::collections::VecDeque;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// The bounds of moves that are made without an administrator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoBounds {
    /// The least part by which calls have to get shorter.
    pub gain_least: f64,
    /// The time for which exports stay where they came to.
    pub rest: Duration,
    /// The number of looks, one after the other, at which a move has to pay.
    pub looks: u32,
    /// Most moves in an hour.
    pub hourly_most: usize,
}

/// A move that is possible, as it is at the time of a look.
#[derive(Debug, Clone, PartialEq)]
pub struct PossibleMove<U> {
    /// The exports that move.
    pub unit: U,
    /// The server to which they move.
    pub to: String,
    /// The fraction of time that a move saves, for the calls that move or for all, whichever is
    /// more.
    pub gain: f64,
    /// The part by which all calls get shorter.
    pub gain_all: f64,
    /// True if the move pays, can be made and is predicted without a doubt.
    pub is_sure: bool,
    /// The time for which the exports have been served here.
    pub served: Duration,
}

/// Decides which moves are made without an administrator. Time is that of a clock that is never set
/// back.
#[derive(Debug)]
pub struct AutoMoves<U> {
    bounds: AutoBounds,
    /// The moves that were within the bounds at the last look, and at how many looks running.
    seen: Vec<(U, String, u32)>,
    /// The times of the moves of the last hour.
    made: VecDeque<Duration>,
    failed: Vec<FailedMove<U>>,
}

/// A move that failed. It is not tried again for a while, which doubles each time.
#[derive(Debug)]
struct FailedMove<U> {
    unit: U,
    to: String,
    pause: Duration,
    until: Duration,
}

impl<U: PartialEq + Clone> AutoMoves<U> {
    /// Begins with no look and no move.
    #[must_use]
    pub const fn new(bounds: AutoBounds) -> Self {
        Self { bounds, seen: Vec::new(), made: VecDeque::new(), failed: Vec::new() }
    }

    /// Looks at the possible moves at the time `now`. Returns the one that is to be made, if any;
    /// it counts as made. Of several, it is the one by which all calls gain most.
    pub fn look<'m>(
        &mut self,
        now: Duration,
        possible: &'m [PossibleMove<U>],
    ) -> Option<&'m PossibleMove<U>> {
        let within = possible.iter().filter(|one| self.is_within(now, one));
        let counted: Vec<_> = within.map(|one| (one, self.looks_at(one) + 1)).collect();
        let seen = counted.iter().map(|(one, looks)| (one.unit.clone(), one.to.clone(), *looks));
        self.seen = seen.collect();
        self.made.retain(|made| now.saturating_sub(*made) < HOUR);
        if self.made.len() >= self.bounds.hourly_most {
            return None;
        }
        let steady = counted.into_iter().filter(|(_, looks)| *looks >= self.bounds.looks);
        let (best, _) = steady.max_by(|(a, _), (b, _)| a.gain_all.total_cmp(&b.gain_all))?;
        self.seen.clear();
        self.made.push_back(now);
        Some(best)
    }

    /// Notes at the time `now` that the move of the last look was not made. It does not count, and
    /// is not tried again for the time of rest, or twice as long as the last time; a day at most.
    pub fn note_failure(&mut self, now: Duration, one: &PossibleMove<U>) {
        self.made.pop_back();
        let known = self.failed.iter().position(|it| it.unit == one.unit && it.to == one.to);
        let before = known.map(|at| self.failed.swap_remove(at).pause * 2);
        let pause = before.unwrap_or(self.bounds.rest).min(24 * HOUR);
        let (unit, to, until) = (one.unit.clone(), one.to.clone(), now + pause);
        self.failed.push(FailedMove { unit, to, pause, until });
    }

    fn is_within(&self, now: Duration, one: &PossibleMove<U>) -> bool {
        let is_same = |it: &&FailedMove<U>| it.unit == one.unit && it.to == one.to;
        let has_failed = self.failed.iter().find(is_same).is_some_and(|it| now < it.until);
        let is_worth_it = one.is_sure && one.gain >= self.bounds.gain_least;
        is_worth_it && !has_failed && one.served >= self.bounds.rest
    }

    fn looks_at(&self, one: &PossibleMove<U>) -> u32 {
        let seen = self.seen.iter().find(|(unit, to, _)| *unit == one.unit && *to == one.to);
        seen.map_or(0, |(_, _, looks)| *looks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: AutoBounds =
        AutoBounds { gain_least: 0.2, rest: Duration::from_secs(600), looks: 3, hourly_most: 2 };

    fn possible(unit: &'static str, gain: f64) -> PossibleMove<&'static str> {
        let served = Duration::from_secs(600);
        PossibleMove { unit, to: "b".to_owned(), gain, gain_all: gain, is_sure: true, served }
    }

    fn at(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    /// The minutes at which a move is made if the same moves are possible at all looks.
    fn made(
        moves: &mut AutoMoves<&'static str>,
        possible: &[PossibleMove<&'static str>],
    ) -> Vec<u64> {
        (0..120).filter(|minute| moves.look(at(*minute), possible).is_some()).collect()
    }

    #[test]
    fn a_move_is_made_when_it_was_within_the_bounds_at_enough_looks() {
        let mut moves = AutoMoves::new(BOUNDS);
        let [high, low] = [possible("a", 0.3), possible("a", 0.1)];
        for (minute, one) in [&high, &high, &low, &high, &high].into_iter().enumerate() {
            assert_eq!(moves.look(at(minute as u64), std::slice::from_ref(one)), None, "{minute}");
        }
        assert_eq!(moves.look(at(5), std::slice::from_ref(&high)), Some(&high));
        assert_eq!(moves.look(at(6), std::slice::from_ref(&high)), None, "the count begins again");
    }

    /// Clients of a small export gain most for themselves, those of a large one for all.
    #[test]
    fn moves_whose_gains_differ_from_look_to_look_do_not_hinder_each_other() {
        let mut moves = AutoMoves::new(BOUNDS);
        for minute in 0..3 {
            let noise = if minute % 2 == 0 { 0.05 } else { -0.05 };
            let small = PossibleMove { gain: 0.9, gain_all: 0.001, ..possible("small", 0.0) };
            let all = [possible("a", 0.3 + noise), possible("b", 0.3 - noise), small];
            let taken = moves.look(at(minute), &all).map(|one| one.unit);
            assert_eq!(taken, (minute == 2).then_some("a"), "{minute}");
        }
    }

    #[test]
    fn a_move_with_too_little_gain_or_rest_or_with_a_doubt_is_never_made() {
        let small = possible("a", 0.19);
        let tired = PossibleMove { served: Duration::from_secs(599), ..possible("b", 0.9) };
        let doubtful = PossibleMove { is_sure: false, ..possible("c", 0.9) };
        assert_eq!(made(&mut AutoMoves::new(BOUNDS), &[small, tired, doubtful]), []);
    }

    #[test]
    fn an_hour_has_no_more_moves_than_allowed() {
        assert_eq!(made(&mut AutoMoves::new(BOUNDS), &[possible("a", 0.3)]), [2, 5, 62, 65]);
    }

    #[test]
    fn a_move_that_fails_is_tried_less_and_less_and_lets_others_through() {
        let mut moves = AutoMoves::new(BOUNDS);
        let mut tried = Vec::new();
        let all = [possible("bad", 0.9), possible("good", 0.3)];
        for minute in 0..80 {
            match moves.look(at(minute), &all) {
                Some(one) if one.unit == "bad" => {
                    moves.note_failure(at(minute), one);
                    tried.push(("bad", minute));
                }
                Some(one) => tried.push((one.unit, minute)),
                None => {}
            }
        }
        // The failed move rests for 10 minutes and does not count. The hour of the first move that
        // counts ends at minute 65.
        assert_eq!(tried[..4], [("bad", 2), ("good", 5), ("good", 8), ("bad", 65)]);
    }
}

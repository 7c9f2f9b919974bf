//! Two servers that each move exports to the other one by themselves, for 1,000 hours.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

use std::collections::BTreeSet;
use std::time::Duration;

use comity_load::{
    Amount, AutoBounds, AutoMoves, Demand, Forecast, PossibleMove, Rates, ServerLoad,
};
use comity_vfs::SplitMix64;

const HOURS: u64 = 1_000;
/// Random worlds in which each test runs.
const SEEDS: u64 = 5;
const LOOK: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const BOUNDS: AutoBounds = AutoBounds { gain_least: 0.3, rest: HOUR, looks: 5, hourly_most: 1 };
const PROCESSORS: f64 = 2.0;
const NAMES: [&str; 2] = ["a", "b"];

/// Random numbers.
struct Random(SplitMix64);

impl Random {
    /// A number from 0 to 1.
    fn part(&mut self) -> f64 {
        (self.0.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// An export, and how many processors its clients use.
struct Unit {
    place: usize,
    since: Duration,
    usual: f64,
    now: f64,
}

/// The processors that programs beside a server use.
#[derive(Debug, Clone, Copy)]
struct Others {
    usual: f64,
    now: f64,
}

/// The way in which the demand of clients changes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Demands {
    /// A constant demand with noise in each minute.
    Noisy,
    /// A demand that becomes another one at random, every five hours in the mean, with noise.
    Shifting,
}

/// A move: its time, the export and the server that it left.
type Made = (Duration, usize, usize);

struct World {
    random: Random,
    units: Vec<Unit>,
    /// The other programs at each server.
    others: [Others; 2],
    moves: [AutoMoves<usize>; 2],
    made: Vec<Made>,
    /// The sum of the slowdowns of all calls.
    waited: f64,
}

impl World {
    /// All exports begin at the first server, which has more other programs.
    fn new(seed: u64) -> Self {
        let mut random = Random(SplitMix64::new(seed));
        let mut unit = || {
            let usual = 0.05 + 0.5 * random.part();
            Unit { place: 0, since: Duration::ZERO, usual, now: usual }
        };
        let units = (0..6).map(|_| unit()).collect();
        let moves = [AutoMoves::new(BOUNDS), AutoMoves::new(BOUNDS)];
        let others = [0.4, 0.05].map(|usual| Others { usual, now: usual });
        Self { random, units, others, moves, made: Vec::new(), waited: 0.0 }
    }

    /// Runs for [`HOURS`], with or without moves.
    fn run(mut self, demands: Demands, with_moves: bool) -> Self {
        for minute in 0..HOURS * 60 {
            self.change(demands);
            for place in (0..2).filter(|_| with_moves) {
                self.look(LOOK * minute as u32, place);
            }
        }
        self
    }

    fn change(&mut self, demands: Demands) {
        let random = &mut self.random;
        for unit in &mut self.units {
            if demands == Demands::Shifting && random.part() < 1.0 / 300.0 {
                unit.usual = random.part().powi(3);
            }
            unit.now = unit.usual * (0.7 + 0.6 * random.part());
        }
        for others in &mut self.others {
            if demands == Demands::Shifting && random.part() < 1.0 / 300.0 {
                others.usual = 0.6 * random.part();
            }
            others.now = others.usual * (0.7 + 0.6 * random.part());
        }
        let loads = [self.load(0), self.load(1)];
        self.waited += loads.map(|load| load.slowdown() * load.own.rates.calls).iter().sum::<f64>();
    }

    fn load(&self, place: usize) -> ServerLoad {
        let here = self.units.iter().filter(|unit| unit.place == place);
        let own: f64 = here.map(|unit| unit.now).sum();
        let others = self.others[place].now;
        let used = (own + others).min(PROCESSORS);
        ServerLoad {
            sampled: HOUR,
            own: demand(own),
            processors: Amount { used, capacity: PROCESSORS },
            // Other programs slow calls down by more than the formula knows.
            processor_slowdown: 1.0 + (used / PROCESSORS).powi(2) + 4.0 * others,
            ..ServerLoad::default()
        }
    }

    fn look(&mut self, now: Duration, place: usize) {
        let (here, there) = (self.load(place), self.load(1 - place));
        let possible = |(unit, it): (usize, &Unit)| {
            let forecast = Forecast::new(&here, &there, demand(it.now));
            let to = NAMES[1 - place].to_owned();
            let is_sure = forecast.pays() && forecast.doubts.is_empty();
            let (gain, gain_all, served) = (forecast.gain(), forecast.all, now - it.since);
            PossibleMove { unit, to, gain, gain_all, is_sure, served }
        };
        let units = self.units.iter().enumerate().filter(|(_, unit)| unit.place == place);
        let possible: Vec<_> = units.map(possible).collect();
        if let Some(one) = self.moves[place].look(now, &possible) {
            let unit = &mut self.units[one.unit];
            (unit.place, unit.since) = (1 - place, now);
            self.made.push((now, one.unit, place));
        }
    }
}

/// The demand of clients that use so many processors.
fn demand(used: f64) -> Demand {
    Demand { rates: Rates { calls: 10_000.0 * used, ..Rates::default() }, processor: used }
}

/// Returns the shortest time between two moves, one after the other, that have the same key.
fn shortest_gap(made: &[Made], key: fn(&Made) -> usize) -> Duration {
    let next = |(at, one): (usize, &Made)| {
        let later = made[at + 1..].iter().find(|other| key(other) == key(one))?;
        Some(later.0 - one.0)
    };
    made.iter().enumerate().filter_map(next).min().unwrap()
}

#[test]
fn exports_with_a_constant_demand_move_once_at_most() {
    for seed in 0..SEEDS {
        let made = World::new(seed).run(Demands::Noisy, true).made;
        assert!(!made.is_empty(), "{seed}");
        let units: BTreeSet<usize> = made.iter().map(|(_, unit, _)| *unit).collect();
        assert_eq!(units.len(), made.len(), "{seed}: {made:?}");
    }
}

#[test]
fn exports_whose_demand_shifts_move_within_the_bounds() {
    for seed in 0..SEEDS {
        let made = World::new(seed).run(Demands::Shifting, true).made;
        assert!(made.len() > 20, "{seed}: {}", made.len());
        assert!(shortest_gap(&made, |(_, unit, _)| *unit) >= BOUNDS.rest, "{seed}");
        assert!(shortest_gap(&made, |(_, _, from)| *from) >= HOUR, "{seed}");
    }
}

#[test]
fn calls_wait_less_with_moves_than_without() {
    for seed in 0..SEEDS {
        let [with, without] =
            [true, false].map(|moves| World::new(seed).run(Demands::Shifting, moves).waited);
        assert!(with < without, "{seed}: {with} {without}");
    }
}

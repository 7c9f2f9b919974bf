use std::time::{Duration, Instant};

use anyhow::Result;
use comity_bench::fixture_tree::FixtureTree;
use comity_remote::nfs4::{Backchannel, Locker, Opened, Stretch};

use super::Bench;
use super::person::{Person, WHOLE};
use super::report::{at_most, median, then};

/// Numbers of ranges, each ten times the one before.
const RANGES: [u64; 3] = [300, 3_000, 30_000];
/// The times of CITI for splitting and joining over NFS, in seconds: for all unlocks, and for all
/// locks and the join. Their largest number of ranges was 29,971.
const SPLIT_2006: [f64; 3] = [0.074, 1.10, 74.4];
const JOIN_2006: [(f64, f64); 3] = [(0.082, 0.0012), (1.55, 0.0116), (134.0, 0.120)];

/// Largest growth of the cost for ten times the ranges.
const GROWTH_MOST: f64 = 13.0;
/// Largest cost of each range, in round trips.
const ROUND_TRIPS_MOST: f64 = 1.2;
/// Calls of one batch. A batch of as many NULL calls follows, as the measure of a round trip.
const BATCH: usize = 50;
/// Rounds of each number of ranges; the median counts.
const ROUNDS: usize = 3;

/// The times for a number of ranges.
struct Taken {
    ranges: u64,
    /// Processor time of the server for all ranges together, in microseconds.
    server: f64,
    /// Time that the client waits for each range, in round trips: the median of all batches.
    round_trips: f64,
    /// The time of the lock of the whole file afterwards, in microseconds.
    whole: f64,
}

/// One lock of the whole file, split by unlocking every other byte.
pub(super) fn split(bench: &Bench) -> Result<bool> {
    let mut setup = Setup::new(bench)?;
    let mut all = Vec::new();
    for ranges in RANGES.map(|ranges| bench.scaled(ranges)) {
        all.push(middle(ranges, || {
            setup.lock(WHOLE)?;
            let taken = setup.each(ranges, Setup::unlock);
            setup.unlock(WHOLE)?;
            taken
        })?);
    }
    println!("     ranges   2006, NFS     all at the server       each   round trips each");
    for (taken, then_) in all.iter().zip(SPLIT_2006) {
        let then = if bench.quick { then(None) } else { then(Some(then_)) };
        println!("  {:>9} {then:>11} {}", taken.ranges, line(taken));
    }
    Ok(judged(&all))
}

/// Locks every other byte, then the whole file.
pub(super) fn join(bench: &Bench) -> Result<bool> {
    let mut setup = Setup::new(bench)?;
    let mut all = Vec::new();
    for ranges in RANGES.map(|ranges| bench.scaled(ranges)) {
        all.push(middle(ranges, || {
            let taken = setup.each(ranges, Setup::lock)?;
            let begun = Instant::now();
            setup.lock(WHOLE)?;
            let whole = micros(begun.elapsed());
            setup.unlock(WHOLE)?;
            Ok(Taken { whole, ..taken })
        })?);
    }
    println!(
        "     ranges   2006: build        join     all at the server       each   \
         round trips each    join"
    );
    for (taken, (build, join)) in all.iter().zip(JOIN_2006) {
        let of = |seconds| if bench.quick { then(None) } else { then(Some(seconds)) };
        let (build, join, whole) = (of(build), of(join), taken.whole / 1e3);
        println!("  {:>9} {build:>13} {join:>11} {} {whole:>7.2} ms", taken.ranges, line(taken));
    }
    let join_growth = all[2].whole / all[1].whole;
    let joined = at_most("10 times the ranges to join cost times", join_growth, GROWTH_MOST);
    Ok(judged(&all) && joined)
}

fn line(taken: &Taken) -> String {
    let each = taken.server / taken.ranges as f64;
    format!("{:>18.1} ms {each:>7.2} us {:>18.2}", taken.server / 1e3, taken.round_trips)
}

fn judged(all: &[Taken]) -> bool {
    let growth = all[2].server / all[1].server;
    let grown = at_most("10 times the ranges cost the server times", growth, GROWTH_MOST);
    at_most("round trips each, of the most ranges", all[2].round_trips, ROUND_TRIPS_MOST) && grown
}

/// Returns the median of some rounds, separately for each figure.
fn middle(ranges: u64, mut round: impl FnMut() -> Result<Taken>) -> Result<Taken> {
    let rounds = (0..ROUNDS).map(|_| round()).collect::<Result<Vec<_>>>()?;
    let of = |figure: fn(&Taken) -> f64| median(rounds.iter().map(figure).collect());
    Ok(Taken {
        ranges,
        server: of(|taken| taken.server),
        round_trips: of(|taken| taken.round_trips),
        whole: of(|taken| taken.whole),
    })
}

/// A server, a client, and a file that it has open.
struct Setup {
    server: crate::server_process::ServerProcess,
    client: Person,
    file: Opened,
    locker: Locker,
}

impl Setup {
    fn new(bench: &Bench) -> Result<Self> {
        let server = bench.server()?;
        let mut client = Person::new(&server, Backchannel::No)?;
        let dir = client.session.mount(&bench.path(FixtureTree::SMALL))?;
        let file = client.open_plainly(&dir, &FixtureTree::file(0))?;
        Ok(Self { server, client, file, locker: Locker::new("locker") })
    }

    fn lock(&mut self, stretch: Stretch) -> Result<()> {
        self.client.lock_now(&self.file, &mut self.locker, stretch)
    }

    fn unlock(&mut self, stretch: Stretch) -> Result<()> {
        self.client.unlock(&self.file, &mut self.locker, stretch)
    }

    /// Runs a call for every other byte, in turn with round trips that do nothing.
    fn each(&mut self, ranges: u64, act: fn(&mut Self, Stretch) -> Result<()>) -> Result<Taken> {
        let (mut server, mut round_trips) = (0.0, Vec::new());
        let stretches: Vec<Stretch> = (0..ranges).map(|number| (2 * number, 1)).collect();
        for batch in stretches.chunks(BATCH) {
            let (begun, before) = (Instant::now(), self.server.cpu_time()?);
            batch.iter().try_for_each(|stretch| act(self, *stretch))?;
            let acting = begun.elapsed().as_secs_f64();
            server += self.server.cpu_time()?.since(&before) as f64 / 1e3;
            let begun = Instant::now();
            batch.iter().try_for_each(|_| self.client.nothing())?;
            round_trips.push(acting / begun.elapsed().as_secs_f64());
        }
        let round_trips = median(round_trips);
        Ok(Taken { ranges, server, round_trips, whole: 0.0 })
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

//! The overhead of the suite in a figure.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

#[path = "../../bench/tests/common/mod.rs"]
mod common;

use std::io::Result as IoResult;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use comity_bench::fixture_tree::FixtureTree;
use comity_bench::load::{Client, Load, Stop};
use comity_bench::prober::Pages;
use comity_bench::suite::{
    Access, Content, Driver, Entry, FileId, FileKind, Files, Interrupt, Latency, LockKind,
    Metadata, Range, Tally, Target, Wait,
};
use comity_bench::targets::DirectoryTarget;
use comity_perf::baseline_server::{script, serve};
use common::{chosen, plan, run};

/// A target on which every operation does nothing. A lookup takes this time, if one is given.
struct Nothing(Option<Duration>);

const EMPTY: Metadata = Metadata { kind: FileKind::File, size: 0, user: 0 };

impl Files for Nothing {
    fn make_directory(&mut self, _: &str) -> IoResult<()> {
        Ok(())
    }
    fn remove_directory(&mut self, _: &str) -> IoResult<()> {
        Ok(())
    }
    fn create(&mut self, _: &str) -> IoResult<FileId> {
        Ok(FileId(0))
    }
    fn open(&mut self, _: &str, _: Access) -> IoResult<FileId> {
        Ok(FileId(0))
    }
    fn close(&mut self, _: FileId) -> IoResult<()> {
        Ok(())
    }
    fn read(&mut self, _: FileId, _: u64, buffer: &mut [u8]) -> IoResult<usize> {
        Ok(buffer.len())
    }
    fn write(&mut self, _: FileId, _: u64, data: &[u8]) -> IoResult<usize> {
        Ok(data.len())
    }
    fn sync(&mut self, _: FileId) -> IoResult<()> {
        Ok(())
    }
    fn attributes(&mut self, _: FileId) -> IoResult<Metadata> {
        Ok(EMPTY)
    }
    fn lookup(&mut self, _: &str) -> IoResult<Metadata> {
        if let Some(delay) = self.0 {
            let begun = Instant::now();
            while begun.elapsed() < delay {}
        }
        Ok(EMPTY)
    }
    fn list(&mut self, _: &str, _: bool) -> IoResult<Vec<Entry>> {
        Ok(Vec::new())
    }
    fn make_link(&mut self, _: &str, _: &str) -> IoResult<()> {
        Ok(())
    }
    fn read_link(&mut self, _: &str) -> IoResult<String> {
        Ok(String::new())
    }
    fn remove(&mut self, _: &str) -> IoResult<()> {
        Ok(())
    }
    fn set_owner(&mut self, _: &str, _: u32, _: u32) -> IoResult<()> {
        Ok(())
    }
    fn lock(&mut self, _: FileId, _: LockKind, _: Range, _: Wait) -> IoResult<()> {
        Ok(())
    }
}

/// Returns the weighted mean of the medians of latencies of each kind, in nanoseconds. Medians of
/// single operations hardly depend on other programs that use the processor.
fn typical(latencies: &[Latency]) -> f64 {
    let weight: u64 = latencies.iter().map(Latency::count).sum();
    let sum: f64 =
        latencies.iter().map(|each| each.quantile(0.5) as f64 * each.count() as f64).sum();
    sum / weight as f64
}

fn driver(files: Box<dyn Files>) -> Driver {
    Driver::new(files, Arc::new(Content::new(1)), Interrupt::default())
}

/// Looks names up with a driver, and returns its tally.
fn looked_up(driver: &mut Driver, path: &str, count: u32) -> Tally {
    driver.take_tally();
    (0..count).for_each(|_| driver.lookup(path).map(drop).unwrap());
    driver.take_tally()
}

/// Nanoseconds of an operation that does nothing, according to the driver.
fn of_nothing() -> f64 {
    let tally = looked_up(&mut driver(Box::new(Nothing(None))), "a/path/of/some/length", 4000);
    typical(&tally.latencies().collect::<Vec<_>>())
}

/// Nanoseconds of an operation of NFSSTONE on a tmpfs.
fn of_nfsstone(memory: &Path) -> f64 {
    let (place, output) = (tempfile::tempdir_in(memory).unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(vec![chosen("nfsstone", &[("operations", "4000")])], output.path());
    let target = DirectoryTarget::open(place.path()).unwrap();
    let (ran, outcome) = run(&plan, Box::new(target));
    ran.unwrap();
    typical(&outcome.workloads[0].rounds[0].latencies)
}

/// Measures two things in turn, in many short rounds, so that other programs on the machine disturb
/// few of them. Returns the median of their ratios, and the two figures of that round.
fn ratio_in_turn(
    rounds: usize,
    mut above: impl FnMut() -> f64,
    mut below: impl FnMut() -> f64,
) -> [f64; 3] {
    let mut tries: Vec<[f64; 3]> = (0..rounds)
        .map(|_| {
            let (above, below) = (above(), below());
            [above / below, above, below]
        })
        .collect();
    tries.sort_by(|a, b| a[0].total_cmp(&b[0]));
    tries[rounds / 2]
}

/// A folder in memory; `None`, with a message that gives the reason, if there is none.
fn memory() -> Option<&'static Path> {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        eprintln!("skipped: there is no /dev/shm");
    }
    memory.is_dir().then_some(memory)
}

#[test]
fn the_driver_is_a_twentieth_of_a_figure_on_tmpfs_at_most() {
    let Some(memory) = memory() else { return };
    let [share, nothing, nfsstone] = ratio_in_turn(31, of_nothing, || of_nfsstone(memory));
    // A program that is not optimized takes four times as long between the readings of the clock.
    let limit = if cfg!(debug_assertions) { 0.20 } else { 0.05 };
    println!("{nothing:.0} ns of {nfsstone:.0} ns: {:.1} %", share * 100.0);
    assert!(share < limit, "{nothing:.0} ns of {nfsstone:.0} ns are the driver's");
}

/// Nanoseconds of each of the `count` operations that `work` performs.
fn each(count: u32, work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_nanos() as f64 / f64::from(count)
}

/// The converse: the driver's figures agree with the time of many operations that are timed
/// together. An operation between two readings of the clock takes slightly longer, because it does
/// not overlap with the one before. If the driver did not subtract the time of the readings, this
/// would fail.
#[test]
fn a_figure_on_tmpfs_is_what_the_operations_take_without_a_driver() {
    const COUNT: u32 = 200;
    let Some(memory) = memory() else { return };
    let place = tempfile::tempdir_in(memory).unwrap();
    std::fs::write(place.path().join("name"), "").unwrap();
    let target = DirectoryTarget::open(place.path()).unwrap();
    let (mut driver, mut files) = (driver(target.files().unwrap()), target.files().unwrap());
    let told = || looked_up(&mut driver, "name", COUNT).spent.as_nanos() as f64 / f64::from(COUNT);
    let mut look_up = || (0..COUNT).for_each(|_| files.lookup("name").map(drop).unwrap());
    let [ratio, told, taken] = ratio_in_turn(301, told, || each(COUNT, &mut look_up));
    println!("a lookup: told {told:.0} ns, taken {taken:.0} ns: {ratio:.3}");
    let most = if cfg!(debug_assertions) { 1.4 } else { 1.1 };
    assert!((0.97..most).contains(&ratio), "told is {ratio:.3} times what was taken");
}

/// The whole cost of a driver, with the readings of the clock and the records that it keeps. Most
/// of it is in no figure, but makes a run longer.
#[test]
fn a_driver_takes_half_a_microsecond_around_an_operation_at_most() {
    const COUNT: u32 = 1000;
    let mut driver = driver(Box::new(Nothing(None)));
    let mut work = || (0..COUNT).for_each(|_| driver.lookup("name").map(drop).unwrap());
    let mut tries: Vec<f64> = (0..101).map(|_| each(COUNT, &mut work)).collect();
    tries.sort_by(f64::total_cmp);
    println!("{:.0} ns around an operation", tries[50]);
    assert!(tries[50] < if cfg!(debug_assertions) { 5000.0 } else { 500.0 }, "{tries:?}");
}

#[test]
fn the_figures_show_a_known_delay() {
    for delay in [1, 10, 100, 1000].map(Duration::from_micros) {
        let tally = looked_up(&mut driver(Box::new(Nothing(Some(delay)))), "name", 300);
        let latency = tally.latencies().next().unwrap();
        let (least, median) = (latency.quantile(0.0), latency.quantile(0.5));
        println!("{delay:?}: {least} ns at least, {median} ns in the median");
        let delay = delay.as_nanos() as u64;
        assert!(least >= delay, "{least} ns are told of an operation of {delay} ns");
        // The target itself reads the clock until the time is over. The width of a bucket is a
        // thousandth.
        let most = delay + delay / 500 + if cfg!(debug_assertions) { 1000 } else { 250 };
        assert!(median <= most, "{median} ns are told of operations of {delay} ns");
        assert!(tally.spent >= Duration::from_nanos(delay) * 300, "{tally:?}");
    }
}

/// Returns the processor time that this thread has used, in seconds.
fn own_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// NULL calls that the client makes in a second of its own processor time, which does not include
/// other programs on the machine.
#[test]
fn the_client_makes_300_000_null_calls_a_second_of_one_core() {
    let folder = tempfile::tempdir().unwrap();
    let layout = FixtureTree::build(folder.path()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tree = layout.clone();
    thread::spawn(move || serve(&tree, listener));
    let null = script(&layout, "null".parse().unwrap(), &Pages::default()).unwrap();
    let mut client = Client::connect(address, 4).unwrap();
    let mut tries = Vec::new();
    let stop = Stop::Calls(if cfg!(debug_assertions) { 10_000 } else { 200_000 });
    for _ in 0..5 {
        let before = own_seconds();
        let outcome = client.run(&null, Load { depth: 32, stop }).unwrap();
        tries.push(outcome.calls as f64 / (own_seconds() - before));
    }
    tries.sort_by(f64::total_cmp);
    println!("{:.0} calls a second of the client's processor time", tries[2]);
    let least = if cfg!(debug_assertions) { 30_000.0 } else { 300_000.0 };
    assert!(tries[2] >= least, "{tries:?} calls a second of the client's processor time");
}

#[test]
fn untimed_work_is_in_no_figure() {
    let mut driver = driver(Box::new(Nothing(None)));
    driver.lookup("one").unwrap();
    for _ in 0..2 {
        let within = |driver: &mut Driver| driver.lookup("not this");
        let around = |driver: &mut Driver| within(driver).and_then(|_| driver.untimed(within));
        driver.untimed(around).unwrap();
    }
    driver.lookup("another").unwrap();
    assert_eq!(driver.take_tally().operations, 2);
}

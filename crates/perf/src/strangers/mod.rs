//! Measures how much a listed client loses while hosts that no export is offered to hold
//! connections or send calls.
//!
//! The server and the listed client share one processor, and the strangers have the other one. So
//! the processor time that strangers use for themselves does not count, and the time that the
//! server spends on them does.

mod calls;
mod crowd;
mod flood;
mod listed;
mod source;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use comity_bench::statistics::median;
use comity_bench::targets;

use self::calls::Call;
use self::crowd::Crowd;
use self::flood::Flood;
use self::listed::{Listed, Sample};
use self::source::Strangers;
use crate::row_options::RowOptions;
use crate::server_process::{SERVER_PROCESSOR, ServerProcess, TestBed};
use comity_bench::process;

/// Options of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The servers and the rows that are measured.
    #[command(flatten)]
    pub rows: RowOptions,
    /// Calls a second of each flood that is judged.
    #[arg(long, default_value_t = 1000)]
    pub rate: u32,
}

/// A listed client keeps at least this part of its calls a second.
const RATE_LEAST: f64 = 0.9;
/// The p99 of a listed client grows at most to this multiple.
const P99_MOST: f64 = 1.1;
/// A server takes at most this long to notice that connections have ended.
const SETTLE_SECONDS_MAX: u64 = 20;

/// The behavior of strangers during a phase.
#[derive(Debug, Clone, Copy)]
enum Behavior {
    Nothing,
    Crowd(Crowd),
    /// The crowd is connected to another program, which reads nothing.
    Elsewhere(Crowd),
    Flood(Flood),
}

/// A row of the table.
struct Phase {
    name: String,
    behavior: Behavior,
    /// True if the bounds hold for it.
    is_judged: bool,
}

/// The size of the server while strangers are connected.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    threads: usize,
    resident_kib: u64,
    descriptors: usize,
}

/// The rounds of one phase.
#[derive(Debug, Default)]
struct Rounds {
    /// Calls a second and p99, disturbed by undisturbed, for each measure of [`Listed`].
    rates: Vec<Vec<f64>>,
    p99s: Vec<Vec<f64>>,
    /// The most connections that strangers had, or the most calls that they made in a second.
    done: f64,
    weight: Weight,
}

/// Measures and prints, and returns whether the listed client lost no more than allowed.
///
/// # Errors
/// The server does not start, or the listed client is not answered as it must be.
pub fn run(options: &Options) -> Result<bool> {
    ensure!(targets::enter_namespace()?, "this takes root: a network of its own, and port 111");
    let test_bed = TestBed::make(&options.rows.subject)?;
    let server = test_bed.start_comity_with(&[SERVER_PROCESSOR], true, &["--portmap"])?;
    process::pin(None, &[SERVER_PROCESSOR])?;
    let mut listed = Listed::new(&server)?;
    header();
    let mut missed = Vec::new();
    for phase in
        phases(options.rate).into_iter().filter(|phase| options.rows.is_wanted(&phase.name))
    {
        let count = rounds_of(&phase, options.rows.quick);
        let rounds = measure(&server, &mut listed, (phase.behavior, count))
            .with_context(|| phase.name.clone())?;
        if !report(&phase, &rounds) {
            missed.push(phase.name);
        }
    }
    missed.iter().for_each(|name| println!("missed: {name}"));
    Ok(missed.is_empty())
}

/// All phases. The first one is the noise of the measurement itself; a crowd at another program
/// shows what the kernel takes from the listed client for connections that the server never sees.
/// Floods as fast as one processor can send are shown and not judged: their cost is their share of
/// the server's processor.
fn phases(rate: u32) -> Vec<Phase> {
    let phase = |name: String, behavior, is_judged| Phase { name, behavior, is_judged };
    let crowd =
        |connections, bytes_a_second| Behavior::Crowd(Crowd { connections, bytes_a_second });
    let drip = Crowd { connections: 1000, bytes_a_second: 1 };
    let mut phases = vec![
        phase("no strangers".to_owned(), Behavior::Nothing, false),
        phase("10,000 idle connections".to_owned(), crowd(10_000, 0), true),
        phase("1,000 send a byte a second".to_owned(), crowd(1000, 1), true),
        phase("the same to another program".to_owned(), Behavior::Elsewhere(drip), false),
    ];
    for (rate, is_judged) in [(Some(rate), true), (None, false)] {
        for call in Call::ALL {
            let how = rate.map_or("as fast as can be".to_owned(), |rate| format!("{rate} /s"));
            let behavior = Behavior::Flood(Flood { call, rate });
            phases.push(phase(format!("{}, {how}", call.name()), behavior, is_judged));
        }
    }
    phases
}

/// Returns the number of rounds of a phase. A p99 of 0.3 seconds varies by a quarter on a quiet
/// machine, so the rows that are judged and the row of the noise get the most rounds.
fn rounds_of(phase: &Phase, is_quick: bool) -> usize {
    match (is_quick, &phase.behavior) {
        (true, _) => 3,
        (false, Behavior::Flood(Flood { rate: None, .. })) => 7,
        (false, _) => 21,
    }
}

/// Takes each measure of the listed client alone and among strangers, in turn.
fn measure(
    server: &ServerProcess,
    listed: &mut Listed,
    (behavior, count): (Behavior, usize),
) -> Result<Rounds> {
    let measures = Listed::NAMES.len();
    let mut rounds = Rounds {
        rates: vec![Vec::new(); measures],
        p99s: vec![Vec::new(); measures],
        ..Rounds::default()
    };
    let quiet = process::descriptors(server.process())?;
    for _ in 0..count {
        let alone = listed.measure()?;
        let strangers = Strangers::begin(server.address, behavior)?;
        let among = listed.measure()?;
        rounds.weight = weigh(server)?;
        rounds.done = rounds.done.max(strangers.end()?);
        rounds.add(&alone, &among);
        settle(server, quiet)?;
    }
    Ok(rounds)
}

impl Rounds {
    fn add(&mut self, alone: &[Sample], among: &[Sample]) {
        for (at, (alone, among)) in alone.iter().zip(among).enumerate() {
            self.rates[at].push(among.rate / alone.rate);
            self.p99s[at].push(among.p99 / alone.p99);
        }
    }
}

fn weigh(server: &ServerProcess) -> Result<Weight> {
    let process = server.process();
    Ok(Weight {
        threads: process::threads(process)?,
        resident_kib: process::resident_kib(process)?,
        descriptors: process::descriptors(process)?,
    })
}

/// Waits until the server has closed the connections that strangers have left.
fn settle(server: &ServerProcess, quiet: usize) -> Result<()> {
    // A listed client may have made the server open some files meanwhile.
    const SLACK: usize = 1100;
    let started = Instant::now();
    while process::descriptors(server.process())? > quiet + SLACK {
        let waited = started.elapsed().as_secs();
        ensure!(waited < SETTLE_SECONDS_MAX, "connections that have ended are still open");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn header() {
    println!("A listed client among strangers, as multiples of the same alone (median of rounds):");
    println!("calls a second, at least {RATE_LEAST}; p99, at most {P99_MOST}.");
    println!();
    let names = Listed::NAMES.map(|name| format!("{name:>15}")).concat();
    println!("{:<31}{names}  {:>8} threads    RSS descriptors", "", "done");
}

/// Prints a row, and returns whether it meets its bounds.
fn report(phase: &Phase, rounds: &Rounds) -> bool {
    let middle =
        |all: &[Vec<f64>]| all.iter().filter_map(|ratios| median(ratios)).collect::<Vec<_>>();
    let (rates, p99s) = (middle(&rounds.rates), middle(&rounds.p99s));
    let met =
        rates.iter().all(|rate| *rate >= RATE_LEAST) && p99s.iter().all(|p99| *p99 <= P99_MOST);
    let figures: String =
        rates.iter().zip(&p99s).map(|(rate, p99)| format!("    {rate:.2}   {p99:.2}")).collect();
    let Weight { threads, resident_kib, descriptors } = rounds.weight;
    let judgement = match (phase.is_judged, met) {
        (false, _) => "-",
        (true, true) => "met",
        (true, false) => "MISSED",
    };
    println!(
        "{:<31}{figures}  {:>8.0} {threads:>7} {:>3} MiB {descriptors:>11}  {judgement}",
        phase.name,
        rounds.done,
        resident_kib / 1024
    );
    met || !phase.is_judged
}

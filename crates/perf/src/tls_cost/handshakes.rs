use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use comity_remote::rpc::Caller;

use super::bed::{Bed, Route};
use super::{at_least, median};

/// Number of handshakes: in a whole run, and with `--quick`.
const HANDSHAKES: (u32, u32) = (2_000, 300);
/// Least number of handshakes in a second of one core.
const A_SECOND_LEAST: f64 = 500.0;
/// Least rate of other calls during handshakes, as a part of their rate without. The client's part
/// of a handshake uses the same processor as the client of these calls.
const CALLS_LEAST: f64 = 0.25;

/// Measures handshakes in which both sides prove a key, while another client makes calls.
///
/// # Errors
/// A handshake or a call fails.
pub(super) fn measure(bed: &Bed, is_quick: bool) -> Result<bool> {
    let count = if is_quick { HANDSHAKES.1 } else { HANDSHAKES.0 };
    let ended = AtomicBool::new(false);
    let alone = {
        let stop = Instant::now() + Duration::from_secs(1);
        call(bed, &|| Instant::now() > stop)?
    };
    let (a_second, beside) = thread::scope(|scope| {
        let calls = scope.spawn(|| call(bed, &|| ended.load(Ordering::Relaxed)));
        let a_second = shake_hands(bed, count);
        ended.store(true, Ordering::Relaxed);
        let calls = calls.join().ok().context("the caller panicked")?;
        anyhow::Ok((a_second?, calls?))
    })?;
    println!("\n{count} handshakes, both sides prove an Ed25519 key");
    let is_fast = at_least("a second of one core", a_second, A_SECOND_LEAST, false);
    println!(
        "  calls of another client: {:.0} a second alone, {:.0} meanwhile;",
        alone.rate, beside.rate
    );
    println!(
        "  the middle one took {:.0} us alone, {:.0} us meanwhile; the longest {:.1} ms meanwhile",
        alone.middle_us,
        beside.middle_us,
        beside.longest_us / 1e3,
    );
    let part = beside.rate / alone.rate;
    Ok(at_least("calls meanwhile, of those alone", part, CALLS_LEAST, false) && is_fast)
}

/// Returns the number of handshakes in a second of the server's processor time. This time includes
/// the calls of the other client, so that the figure is too small.
fn shake_hands(bed: &Bed, count: u32) -> Result<f64> {
    let shake_hands = || (0..count).try_for_each(|_| bed.connect(Route::Tls).map(drop));
    Ok(f64::from(count) / bed.processor_seconds(shake_hands)?)
}

/// Calls of a client.
struct CallTimes {
    rate: f64,
    middle_us: f64,
    longest_us: f64,
}

/// Looks up the same name repeatedly until `is_over`.
fn call(bed: &Bed, is_over: &dyn Fn() -> bool) -> Result<CallTimes> {
    let mut caller = Caller::connect(bed.server.address)?;
    let (started, mut times) = (Instant::now(), Vec::new());
    while !is_over() {
        let begun = Instant::now();
        caller.lookup(&bed.root, comity_bench::fixture_tree::FixtureTree::SMALL)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let rate = times.len() as f64 / started.elapsed().as_secs_f64();
    let longest_us = times.iter().copied().fold(0.0, f64::max);
    Ok(CallTimes { rate, middle_us: median(&times), longest_us })
}

//! The time for which nobody serves an export while it moves to another server with the state of a
//! client, by the amount of that state. Both servers run on this machine, so the files are shared
//! and are not copied.

mod holdings;

use anyhow::{Context, Result, ensure};
use comity_bench::process;

use self::holdings::{HOLDINGS, Holding};
use crate::row_options::RowOptions;
use crate::server_process::{LOAD_PROCESSOR, SERVER_PROCESSOR, ServerPair, TestBed};
use crate::state_cost::report::median;

/// Longest freeze in milliseconds (the aim of the design: clients wait for less than a second).
const FREEZE_MOST: f64 = 1000.0;

/// Moves of each row, to the other server and back in turn; a quick run has fewer.
const MOVES: usize = 21;
const MOVES_QUICK: usize = 5;

/// Measures and prints; returns whether every freeze was shorter than the bound.
///
/// # Errors
/// A server does not start, a call is not answered as it must be, or the export does not move.
pub fn run(options: &RowOptions) -> Result<bool> {
    process::pin(None, &[LOAD_PROCESSOR])?;
    println!("{:38} {:>9} {:>8} {:>8} {:>12}", "state", "bytes", "median", "most", "at most, ms");
    let mut is_met = true;
    for holding in HOLDINGS.iter().filter(|holding| options.is_wanted(holding.name)) {
        is_met &= measure(options, holding).with_context(|| holding.name.to_owned())?;
    }
    Ok(is_met)
}

/// Moves an export to and fro while a client holds something.
fn measure(options: &RowOptions, holding: &Holding) -> Result<bool> {
    let test_bed = TestBed::make(&options.subject)?;
    let servers = ServerPair::start(&test_bed, [SERVER_PROCESSOR; 2])?;
    let client = holding.hold(&test_bed, servers.first())?;
    let moves = if options.quick { MOVES_QUICK } else { MOVES };
    let mut bytes = 0;
    let mut freezes = Vec::new();
    for number in 0..moves {
        let moved = servers.migrate(number % 2)?;
        ensure!(moved.states >= holding.opens, "{} states of {}", moved.states, holding.opens);
        bytes = moved.state_bytes;
        freezes.push(moved.frozen_milliseconds as f64);
    }
    drop(client);
    let most = freezes.iter().copied().fold(0.0, f64::max);
    let (median, name, is_met) = (median(freezes), holding.name, most <= FREEZE_MOST);
    let judgement = if is_met { "met" } else { "MISSED" };
    println!("{name:38} {bytes:>9} {median:>8} {most:>8} {FREEZE_MOST:>12}: {judgement}");
    Ok(is_met)
}

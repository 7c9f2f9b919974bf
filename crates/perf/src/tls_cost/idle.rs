use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use comity_bench::process;
use comity_remote::rpc::{Caller, Duplex, caller_ids};

use super::bed::{Bed, Route};

/// Number of idle connections: in a whole run, and with `--quick`.
const CONNECTIONS: (usize, usize) = (2_000, 300);
/// Number of connections after which the server has allocated all that does not depend on their
/// number.
const WARM_UP: usize = 64;
/// KiB of the server's memory that an idle connection may take.
const KIB_MOST: f64 = 24.0;
/// Longest time until the server is idle.
const REST: Duration = Duration::from_millis(500);

/// Measures the growth of the server's memory for each idle connection that has made one call by
/// TLS.
///
/// # Errors
/// A connection is refused.
pub(super) fn measure(bed: &Bed, is_quick: bool) -> Result<bool> {
    let count = if is_quick { CONNECTIONS.1 } else { CONNECTIONS.0 };
    let _warm = connections(bed, WARM_UP)?;
    let before = resident_kib(bed)?;
    let _idle = connections(bed, count)?;
    let each = (resident_kib(bed)? - before) / count as f64;
    let is_small = each <= KIB_MOST;
    let verdict = if is_small { "met" } else { "MISSED" };
    println!("\n{count} idle connections by TLS");
    println!("  KiB each: {each:.2}, at most {KIB_MOST}: {verdict}");
    Ok(is_small)
}

fn connections(bed: &Bed, count: usize) -> Result<Vec<Caller>> {
    let connect = |_| {
        let stream: Box<dyn Duplex> = bed.connect(Route::Tls)?;
        let mut caller = Caller::over(stream, caller_ids());
        caller.lookup(&bed.root, comity_bench::fixture_tree::FixtureTree::SMALL)?;
        Ok(caller)
    };
    (0..count).map(connect).collect()
}

fn resident_kib(bed: &Bed) -> Result<f64> {
    sleep(REST);
    Ok(process::resident_kib(bed.server.process())? as f64)
}

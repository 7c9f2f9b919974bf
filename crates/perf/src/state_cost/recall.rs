use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use comity_bench::fixture_tree::FixtureTree;
use comity_proto::nfs4::share;
use comity_remote::nfs4::{Backchannel, Locker, Opened};

use super::person::Person;
use super::report::{at_most, then};
use super::{Bench, server_time};

/// Numbers of locks of the client, with the times that CITI measured for them, in seconds. The last
/// was ended by the lease.
const LOCKS: [(u64, f64); 4] = [(500, 0.129), (5_000, 2.36), (25_000, 36.5), (50_000, 90.0)];

/// The most that the cost may grow from 5,000 to 50,000, as a factor.
const GROWTH_MOST: f64 = 13.0;
/// Wait before the retry of a call that was answered with DELAY.
const PAUSE: Duration = Duration::from_millis(1);
/// Number of attempts for an OPEN that gets a delegation once the backchannel has been probed.
const TRIES: usize = 1_000;

/// A client has a write delegation of a file and n local locks on it, and another client opens the
/// file. The first client establishes its locks at the server and returns the delegation.
pub(super) fn recall(bench: &Bench) -> Result<bool> {
    let server = bench.server()?;
    let mut holder = Person::new(&server, Backchannel::Yes)?;
    let mut other = Person::new(&server, Backchannel::No)?;
    let dir = holder.session.mount(&bench.path(FixtureTree::SMALL))?;
    println!("      locks        2006         now    each, at the server   kept");
    let (mut times, mut kept) = (Vec::new(), true);
    for (number, (locks, in_2006)) in LOCKS.into_iter().enumerate() {
        let locks = bench.scaled(locks);
        let name = FixtureTree::file(number);
        let opened = delegated(&mut holder, &dir, &name)?;
        let begun = Instant::now();
        let first = other.open(&dir, (&name, "other"), share::READ | share::WANT_NO_DELEG)?;
        ensure!(first.is_none(), "the delegation was not recalled");
        holder.session.wire.await_recall()?;
        let back = || give_back(&mut holder, &opened, locks);
        let (is_kept, time) = server_time(&server, back)?;
        until_open(&mut other, &dir, &name)?;
        let taken = begun.elapsed().as_secs_f64();
        let then = if bench.quick { then(None) } else { then(Some(in_2006)) };
        let (each, said) = (time / locks as f64, if is_kept { "all" } else { "NO" });
        println!("  {locks:>9} {then:>11} {:>9.1} ms {each:>16.2} us {said:>6}", taken * 1e3);
        times.push(time);
        kept &= is_kept;
    }
    let growth = times[3] / times[1];
    Ok(at_most("10 times the locks cost the server times", growth, GROWTH_MOST) && kept)
}

/// A file open with a write delegation.
pub(super) fn delegated(holder: &mut Person, dir: &[u8], name: &str) -> Result<Opened> {
    for _ in 0..TRIES {
        let opened = holder.open(dir, (name, "holder"), share::BOTH | share::WANT_WRITE_DELEG)?;
        let opened = opened.context("OPEN has to wait")?;
        if opened.delegation.is_some() {
            return Ok(opened);
        }
        holder.close(&opened)?;
        sleep(PAUSE);
    }
    anyhow::bail!("no delegation is granted")
}

/// Establishes the locks at the server, then returns the delegation. Returns whether the client
/// kept all locks.
fn give_back(holder: &mut Person, opened: &Opened, locks: u64) -> Result<bool> {
    let mut locker = Locker::new("locker");
    for number in 0..locks {
        holder.lock_now(opened, &mut locker, (2 * number, 1))?;
    }
    let delegation = opened.delegation.context("no delegation")?;
    let has_been_kept = holder.is_good(delegation)?;
    holder.return_delegation(opened)?;
    let locked = locker.stateid.context("no locks")?;
    Ok(has_been_kept && holder.is_good(opened.stateid)? && holder.is_good(locked)?)
}

fn until_open(other: &mut Person, dir: &[u8], name: &str) -> Result<()> {
    let begun = Instant::now();
    while other.open(dir, (name, "other"), share::READ | share::WANT_NO_DELEG)?.is_none() {
        ensure!(begun.elapsed() < Duration::from_secs(10), "the recall does not end");
        sleep(PAUSE);
    }
    Ok(())
}

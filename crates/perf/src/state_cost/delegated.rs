use anyhow::{Context, Result, ensure};
use comity_bench::fixture_tree::{FixtureTree, SMALL_FILES};
use comity_proto::nfs4::share;
use comity_remote::nfs4::{Backchannel, Opened};

use super::person::Person;
use super::report::{at_most, median};
use super::{Bench, recall, server_time};

/// The number of delegations held during the measurement. Their client may have as many.
const HELD: u64 = 100_000;
/// The number of delegations at which CITI's server refused more.
const REFUSED_2006: u64 = 2_100;
/// Largest ratio of the cost of OPEN with a delegation to that without.
const RATIO_MOST: f64 = 1.05;
/// Rounds of each measurement.
const ROUNDS: usize = 9;

/// The same files opened with a delegation and without, in turn, while very many are held.
pub(super) fn opens(bench: &Bench) -> Result<bool> {
    let (server, held) = (bench.server_apart()?, bench.scaled(HELD));
    let many = bench.many(held)?;
    let mut client = Person::new(&server, Backchannel::Yes)?;
    let (dir, few) = (client.session.mount(&many)?, bench.path(FixtureTree::SMALL));
    let few = client.session.mount(&few)?;
    // The backchannel has to be probed before anything is delegated.
    let first = recall::delegated(&mut client, &few, &FixtureTree::file(0))?;
    give_up(&mut client, &[first])?;
    let mut refused = 0;
    for number in 0..held {
        let opened = open(&mut client, &dir, number, true)?;
        refused += u64::from(opened.delegation.is_none());
    }
    println!("  delegations held: {}, refused: {refused}", held - refused);
    println!("  2006: refused from {REFUSED_2006} on; OPEN as dear as without up to 100");
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        with.push(sample(&server, &mut client, &few, true)?);
        without.push(sample(&server, &mut client, &few, false)?);
    }
    let (with, without) = (median(with), median(without));
    println!("  OPEN, us of the server's time: {with:.2} with, {without:.2} without");
    Ok(at_most("with is times without", with / without, RATIO_MOST) && refused == 0)
}

/// The server's time for an OPEN, in microseconds.
fn sample(
    server: &crate::server_process::ServerProcess,
    client: &mut Person,
    dir: &[u8],
    delegated: bool,
) -> Result<f64> {
    let all = || (0..SMALL_FILES as u64).map(|n| open(client, dir, n, delegated)).collect();
    let (opened, time): (Vec<Opened>, f64) = server_time(server, all)?;
    let given = opened.iter().filter(|opened| opened.delegation.is_some()).count();
    ensure!(given == if delegated { SMALL_FILES } else { 0 }, "{given} delegations");
    give_up(client, &opened)?;
    Ok(time / SMALL_FILES as f64)
}

fn open(client: &mut Person, dir: &[u8], number: u64, delegated: bool) -> Result<Opened> {
    let want = if delegated { share::WANT_READ_DELEG } else { share::WANT_NO_DELEG };
    let name = FixtureTree::file(number as usize);
    client.open(dir, (&name, "opener"), share::READ | want)?.context("OPEN has to wait")
}

fn give_up(client: &mut Person, opened: &[Opened]) -> Result<()> {
    for file in opened {
        if file.delegation.is_some() {
            client.return_delegation(file)?;
        }
        client.close(file)?;
    }
    Ok(())
}

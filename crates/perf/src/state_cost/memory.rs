use std::time::Duration;

use anyhow::{Context, Result};
use comity_bench::fixture_tree::FixtureTree;
use comity_bench::process;
use comity_proto::nfs4::share;
use comity_remote::nfs4::Backchannel;

use super::Bench;
use super::person::Person;
use super::report::at_most;
use crate::server_process::ServerProcess;

/// Clients, each with a connection and a session of its own.
const CLIENTS: u64 = 900;
/// The number of files. Each is opened by one client and then delegated to it.
const FILES: u64 = 100_000;

/// The KiB that a connection with a session may use.
const CONNECTION_MOST: f64 = 8.0;
/// The bytes that an open may use, and a delegation.
const OPEN_MOST: f64 = 450.0;
const DELEGATION_MOST: f64 = 500.0;
/// Longest time until the server is idle, in milliseconds.
const REST_MILLISECONDS: u64 = 300;

/// Measures the growth of the server's memory for each client, open and delegation.
pub(super) fn weigh(bench: &Bench) -> Result<bool> {
    let (server, files, clients) =
        (bench.server_apart()?, bench.scaled(FILES), bench.scaled(CLIENTS));
    let dir = bench.many(files)?;
    let mut first = Person::new(&server, Backchannel::Yes)?;
    let dir = first.session.mount(&dir)?;
    // Files that were only looked up do not count as state.
    open_all(&mut [first], &dir, files, (share::WANT_NO_DELEG, true))?;
    let before = resting_bytes(&server)?;
    let person = |_| Person::new(&server, Backchannel::Yes);
    let mut people = (0..clients).map(person).collect::<Result<Vec<_>>>()?;
    for person in &mut people {
        person.nothing()?;
    }
    let met = resting_bytes(&server)?;
    open_all(&mut people, &dir, files, (share::WANT_NO_DELEG, false))?;
    let opened = resting_bytes(&server)?;
    let delegations = open_all(&mut people, &dir, files, (share::WANT_READ_DELEG, false))?;
    let delegated = resting_bytes(&server)?;
    println!("  {clients} clients, {files} opens, {delegations} delegations");
    let each = |from: f64, to: f64, count: u64| (to - from) / count.max(1) as f64;
    let connection = each(before, met, clients) / 1024.0;
    let good = [
        at_most("a connection with a session, KiB", connection, CONNECTION_MOST),
        at_most("an open, bytes", each(met, opened, files), OPEN_MOST),
        at_most("a delegation, bytes", each(opened, delegated, delegations), DELEGATION_MOST),
    ];
    println!("  the server in all: {:.1} MiB", delegated / f64::from(1 << 20));
    Ok(good.iter().all(|good| *good) && delegations == files)
}

/// Opens all files, each by one of the clients, and closes them again on request. Returns how many
/// were delegated.
fn open_all(
    people: &mut [Person],
    dir: &[u8],
    files: u64,
    (want, closes): (u32, bool),
) -> Result<u64> {
    let mut delegated = 0;
    for number in 0..files as usize {
        let person = number % people.len();
        let person = &mut people[person];
        let name = FixtureTree::file(number);
        let opened = person.open(dir, (&name, "owner"), share::READ | want)?;
        let opened = opened.context("OPEN has to wait")?;
        delegated += u64::from(opened.delegation.is_some());
        if closes {
            person.close(&opened)?;
        }
    }
    Ok(delegated)
}

fn resting_bytes(server: &ServerProcess) -> Result<f64> {
    std::thread::sleep(Duration::from_millis(REST_MILLISECONDS));
    Ok(process::resident_kib(server.process())? as f64 * 1024.0)
}

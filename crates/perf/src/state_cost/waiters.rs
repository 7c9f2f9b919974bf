use std::collections::VecDeque;

use anyhow::{Context, Result, ensure};
use comity_bench::fixture_tree::FixtureTree;
use comity_remote::nfs4::{Backchannel, Locker, Opened};

use super::person::Person;
use super::report::{at_most, median};
use super::{Bench, server_time};

/// Numbers of waiters, with the time in which CITI's fair queue transferred the lock, in
/// microseconds. CITI did not try ten thousand.
const WAITERS: [(u64, &str); 5] =
    [(1, "68"), (10, "73"), (100, "353"), (1_000, "29,215"), (10_000, "-")];

/// Largest ratio between the costs in two queues.
const SPREAD_MOST: f64 = 1.2;
/// Hand-overs in a sample, and the number of samples.
const HANDED: usize = 100;
const ROUNDS: usize = 9;
/// The byte that the waiters wait for.
const BYTE: (u64, u64) = (0, 1);
/// A byte that nobody waits for.
const OTHER: (u64, u64) = (8, 1);

/// N owners wait for a byte that another owner has locked. That owner unlocks it, the first in the
/// queue gets it, and the former owner joins the queue. All queues are measured in turn.
pub(super) fn hand_over(bench: &Bench) -> Result<bool> {
    let server = bench.server()?;
    let mut client = Person::new(&server, Backchannel::No)?;
    let dir = client.session.mount(&bench.path(FixtureTree::SMALL))?;
    let mut lines = Vec::new();
    // Fill the longest queue first: each waiter keeps its place for more than half a minute.
    for (number, (waiters, _)) in WAITERS.iter().enumerate().rev() {
        let file = client.open_plainly(&dir, &FixtureTree::file(number))?;
        let waiters = if *waiters > 10 { bench.scaled(*waiters) } else { *waiters };
        lines.insert(0, Line::new(&mut client, file, waiters)?);
    }
    let mut samples = vec![Vec::new(); lines.len()];
    for _ in 0..ROUNDS {
        for (line, samples) in lines.iter_mut().zip(&mut samples) {
            let hand = || (0..HANDED).try_for_each(|_| line.hand_on(&mut client));
            samples.push(server_time(&server, hand)?.1 / HANDED as f64);
        }
    }
    println!("    waiters   2006, us   now, us of the server's time");
    let medians: Vec<f64> = samples.into_iter().map(median).collect();
    for ((line, (_, then)), now) in lines.iter().zip(WAITERS).zip(&medians) {
        let then = if bench.quick { "-" } else { then };
        println!("  {:>9} {then:>10} {now:>9.2}", line.waiting.len());
    }
    let (least, most) = medians
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), now| (least.min(*now), most.max(*now)));
    Ok(at_most("the dearest is times the cheapest", most / least, SPREAD_MOST))
}

/// The owner of the lock on a byte of a file, and its waiters in order.
struct Line {
    file: Opened,
    holder: Locker,
    waiting: VecDeque<Locker>,
}

impl Line {
    fn new(client: &mut Person, file: Opened, waiters: u64) -> Result<Self> {
        let mut holder = Locker::new("the first");
        client.lock_now(&file, &mut holder, BYTE)?;
        let mut waiting = VecDeque::new();
        for number in 0..waiters {
            let mut waiter = Locker::new(format!("waiter {number}"));
            // Its lock state exists before the measurement, as for the waiters that had the lock
            // before.
            client.lock_now(&file, &mut waiter, OTHER)?;
            client.unlock(&file, &mut waiter, OTHER)?;
            ensure!(!client.lock(&file, &mut waiter, BYTE)?, "two have the lock");
            waiting.push_back(waiter);
        }
        Ok(Self { file, holder, waiting })
    }

    fn hand_on(&mut self, client: &mut Person) -> Result<()> {
        client.unlock(&self.file, &mut self.holder, BYTE)?;
        let Some(mut next) = self.waiting.pop_front() else { return Ok(()) };
        let handed = client.lock_now(&self.file, &mut next, BYTE);
        handed.context("the first in line; its place is lost if it does not come for 45 s")?;
        let mut before = std::mem::replace(&mut self.holder, next);
        ensure!(!client.lock(&self.file, &mut before, BYTE)?, "two have the lock");
        self.waiting.push_back(before);
        Ok(())
    }
}

//! The opens, locks and waiters of a client while an export moves.

use anyhow::{Result, ensure};
use comity_bench::fixture_tree::FixtureTree;
use comity_remote::nfs4::{Backchannel, Locker, Opened};

use crate::server_process::{ServerProcess, TestBed};
use crate::state_cost::person::Person;

/// A row of the table.
pub(super) struct Holding {
    /// The name of the row.
    pub(super) name: &'static str,
    /// The number of files that are open, one at least.
    pub(super) opens: usize,
    /// The number of separate ranges of the first file that are locked.
    locks: u64,
    /// The number of owners that wait for the first byte of the first file.
    waiters: u64,
}

/// The rows.
pub(super) const HOLDINGS: &[Holding] = &[
    row("one open", (1, 0, 0)),
    row("1,000 opens", (1_000, 0, 0)),
    row("10,000 locks", (1, 10_000, 0)),
    row("100 waiters", (1, 0, 100)),
    row("1,000 opens, 10,000 locks, 100 waiters", (1_000, 10_000, 100)),
];

const fn row(name: &'static str, (opens, locks, waiters): (usize, u64, u64)) -> Holding {
    Holding { name, opens, locks, waiters }
}

/// The byte that owners wait for.
const WANTED: (u64, u64) = (0, 1);
/// A byte that is not locked for long.
const OTHER: (u64, u64) = (4, 1);

impl Holding {
    /// Makes a client that holds this at a server.
    pub(super) fn hold(&self, test_bed: &TestBed, server: &ServerProcess) -> Result<Person> {
        let mut client = Person::new(server, Backchannel::No)?;
        let small = test_bed.layout.small();
        let dir = client.session.mount(&small.to_string_lossy())?;
        let first = client.open_plainly(&dir, &FixtureTree::file(0))?;
        for number in 1..self.opens {
            client.open_plainly(&dir, &FixtureTree::file(number))?;
        }
        let mut locker = Locker::new("locker");
        for number in 0..self.locks {
            client.lock_now(&first, &mut locker, (16 + 16 * number, 8))?;
        }
        self.queue(&mut client, &first)?;
        Ok(client)
    }

    /// Has owners wait for a byte that another one has.
    fn queue(&self, client: &mut Person, file: &Opened) -> Result<()> {
        if self.waiters == 0 {
            return Ok(());
        }
        client.lock_now(file, &mut Locker::new("the first"), WANTED)?;
        for number in 0..self.waiters {
            let mut waiter = Locker::new(format!("waiter {number}"));
            // An owner waits by the stateid of its lock state, so each locks another byte first.
            client.lock_now(file, &mut waiter, OTHER)?;
            client.unlock(file, &mut waiter, OTHER)?;
            ensure!(!client.lock(file, &mut waiter, WANTED)?, "two have the lock");
        }
        Ok(())
    }
}

//! The cost of a cluster of heads to etcd: requests, bytes and processor time of what heads do,
//! with heads on this machine, and of single requests to an etcd with the keys of a large cluster.
//!
//! docs/scale.md computes larger clusters from these figures. Counts are exact; times depend on
//! what else the machine does.

mod etcd_member;
mod heads;
mod requests;

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use comity_proto::nfs4::share;
use comity_remote::nfs4::{Backchannel, Locker};

use self::etcd_member::{EtcdCounts, EtcdMember, required};
use self::heads::Heads;
use crate::row_options::RowOptions;
use crate::server_process::open_to_all;
use crate::state_cost::person::{Person, WHOLE};
use crate::state_cost::report::at_most;

/// Heads and exports on this machine, and those of a quick run.
const HEADS: (usize, usize) = (4, 300);
const HEADS_QUICK: (usize, usize) = (3, 60);

/// Clients that come.
const CLIENTS: usize = 50;

/// The time for which nothing happens.
const IDLE: Duration = Duration::from_secs(20);

/// Longest time until the heads have done something.
const PATIENCE: Duration = Duration::from_secs(300);

/// Most requests of an idle head in a second: a look, and six renewals in ten seconds.
const IDLE_MOST: f64 = 1.8;

/// Most requests for each export while the heads start: those of its head that takes it, and some
/// of heads that look.
const START_MOST: f64 = 12.0;

/// Measures and prints; returns whether heads ask as seldom as they should.
///
/// # Errors
/// etcd is not installed, or a server does not do what it must.
pub fn run(options: &RowOptions) -> Result<bool> {
    let folder =
        tempfile::Builder::new().prefix("comity-").tempdir_in(&options.subject.directory)?;
    open_to_all(folder.path())?;
    if options.is_wanted("requests") {
        let folder = folder.path().join("requests");
        std::fs::create_dir(&folder)?;
        requests::measure(&required(EtcdMember::start(&folder)?)?, options.quick)?;
    }
    if !options.is_wanted("heads") {
        return Ok(true);
    }
    measure_heads(folder.path(), options)
}

fn measure_heads(folder: &Path, options: &RowOptions) -> Result<bool> {
    let etcd = required(EtcdMember::start(folder)?)?;
    let (count, exports) = if options.quick { HEADS_QUICK } else { HEADS };
    println!("{count} heads and {exports} exports");
    println!("{}", PhaseCosts::NAMES.map(|name| format!("{name:>10}")).join(" "));
    let program = std::path::absolute(&options.subject.comity)?;
    let row = PhaseCosts::begin(&etcd)?;
    let mut heads = Heads::start((&program, folder), (count, exports), &etcd.url())?;
    until_known(&heads, count)?;
    let start = row.end("start")? / exports as f64;
    sleep(Duration::from_secs(2));
    let row = PhaseCosts::begin(&etcd)?;
    sleep(IDLE);
    let idle = row.end("idle, a head and second")? / count as f64 / IDLE.as_secs_f64();
    measure_clients(&etcd, &heads)?;
    let row = PhaseCosts::begin(&etcd)?;
    heads.move_export(0, (0, 1))?;
    row.end("a move, without clients")?;
    let (row, before) = (PhaseCosts::begin(&etcd)?, Instant::now());
    heads.kill_last()?;
    let is_lost = |export: &serde_json::Value| export["head"].is_null();
    until(|| Ok(heads.count(0, is_lost)? > 0))?;
    let ended = before.elapsed();
    until_known(&heads, count - 1)?;
    row.end("a head fails")?;
    let (ended, taken) = (ended.as_secs_f64(), before.elapsed().as_secs_f64());
    println!("its lease had ended after {ended:.1} s, and all was served after {taken:.1} s");
    println!("a head: {:.0} MiB resident", heads.resident_mib(0)?);
    let is_met = [
        at_most("requests of an idle head a second", idle, IDLE_MOST),
        at_most("requests for an export at the start", start, START_MOST),
    ];
    Ok(is_met == [true; 2])
}

/// Has clients come to the first head, open a file and lock it.
fn measure_clients(etcd: &EtcdMember, heads: &Heads) -> Result<()> {
    let row = PhaseCosts::begin(etcd)?;
    let person = |_| Person::at(heads.address(0)?, Backchannel::Yes);
    let mut people = (0..CLIENTS).map(person).collect::<Result<Vec<Person>>>()?;
    let path = heads.path(0).display().to_string();
    row.end("clients come, of 50")?;
    let row = PhaseCosts::begin(etcd)?;
    let first = people.first_mut().context("no client")?;
    let folder = first.session.mount(&path)?;
    let opened = first.open(&folder, ("file", "owner"), share::BOTH | share::WANT_NO_DELEG)?;
    let opened = opened.context("OPEN has to wait")?;
    first.lock_now(&opened, &mut Locker::new(b"locker"), WHOLE)?;
    row.end("an open and a lock")?;
    Ok(())
}

/// Waits until all heads know that all exports are served.
fn until_known(heads: &Heads, count: usize) -> Result<()> {
    until(|| {
        for head in 0..count {
            let is_served = |export: &serde_json::Value| !export["head"].is_null();
            if heads.count(head, is_served)? < heads.exports {
                return Ok(false);
            }
        }
        let here = |head| heads.count(head, |export| export["is_served_here"] == true);
        Ok((0..count).map(here).sum::<Result<usize>>()? == heads.exports)
    })
}

fn until(mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        ensure!(begun.elapsed() < PATIENCE, "the heads do not come to rest");
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A row of the table: the work of etcd during a phase.
struct PhaseCosts<'e> {
    etcd: &'e EtcdMember,
    before: EtcdCounts,
    begun: Instant,
}

impl<'e> PhaseCosts<'e> {
    const NAMES: [&'static str; 8] =
        ["seconds", "renewals", "reads", "txns", "puts", "fsyncs", "KB sent", "etcd, ms"];

    fn begin(etcd: &'e EtcdMember) -> Result<Self> {
        Ok(Self { etcd, before: etcd.counts()?, begun: Instant::now() })
    }

    /// Prints the row; returns the number of requests.
    fn end(self, name: &str) -> Result<f64> {
        let (after, before) = (self.etcd.counts()?, &self.before);
        let requests = ["LeaseKeepAlive", "Range", "Txn"].map(|it| after.requests(before, it));
        let [renewals, reads, transactions] = requests;
        let cells = [
            self.begun.elapsed().as_secs_f64(),
            renewals,
            reads,
            transactions,
            after.since(before, "etcd_debugging_mvcc_put_total"),
            after.since(before, "etcd_disk_wal_fsync_duration_seconds_count"),
            after.sent_bytes(before) / 1e3,
            after.microseconds(before) / 1e3,
        ];
        println!("{}  {name}", cells.map(|cell| format!("{cell:>10.1}")).join(" "));
        Ok(requests.iter().sum())
    }
}

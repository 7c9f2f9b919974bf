//! The cost of single requests of a head to an etcd that holds the keys of a large cluster.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use comity_state::{
    ClientProtocol, Identity, Origin, OriginChannel, Principal, Record, RecordedClient, Verifier,
};
use comity_store::etcd::{Etcd, Op};
use comity_store::{EtcdRecords, Fence};
use comity_vfs::AsServer;

use super::etcd_member::EtcdMember;

/// Heads and exports whose keys etcd holds.
const HEADS: usize = 1000;
const EXPORTS: usize = 4000;

/// The keys of a part of the cluster, as a head writes them: their prefix, and a value.
const PARTS: [(&str, usize, &str); 3] = [
    ("/comity/heads/head-", HEADS, "head-0000 694d77aa8a2c1b2f"),
    (
        "/comity/endpoints/head-",
        HEADS,
        "head-0000 694d77aa8a2c1b2f head-0000.example.org 2049 \
         ed25519:AAxZJxEvu5tMdEDLymqeQHL+vaH27JgVl8AWX7czThk=",
    ),
    ("/comity/served/srv/projects/export-", EXPORTS, "head-0000 694d77aa8a2c1b2f"),
];

/// The key that each change sets.
const CHANGES: &[u8] = b"/comity/changes";

/// Puts in one transaction.
const TOGETHER: usize = 100;

/// Rounds of each request, and client records; a quick run has a tenth of them.
const ROUNDS: usize = 100;
const RECORDS: usize = 10_000;

/// Measures and prints.
pub(super) fn measure(member: &EtcdMember, quick: bool) -> Result<()> {
    let etcd = Arc::new(member.client()?);
    fill(&etcd)?;
    let rounds = if quick { ROUNDS / 10 } else { ROUNDS };
    println!("requests to an etcd with the keys of {HEADS} heads and {EXPORTS} exports");
    println!("{:42} {:>10} {:>12} {:>12}", "request", "time, us", "etcd, us", "bytes sent");
    let prefixes: Vec<Vec<u8>> = PARTS.iter().map(|part| folder(part.0)).collect();
    let row = |name: &str, request: &mut dyn FnMut() -> Result<()>| {
        print_row(member, (name, rounds), request)
    };
    let (_, revision) = etcd.changes(&prefixes, i64::MAX)?;
    row("a look, when nothing has changed", &mut || {
        let glance = etcd.glance(CHANGES, &folder(PARTS[0].0))?;
        ensure!(glance.count == HEADS, "{glance:?}");
        Ok(())
    })?;
    row("what has changed, when little has", &mut || {
        etcd.changes(&prefixes, revision + 1)?;
        Ok(())
    })?;
    row("the names of all heads", &mut || Ok(etcd.range(&folder(PARTS[0].0)).map(drop)?))?;
    row("everything", &mut || {
        prefixes.iter().try_for_each(|prefix| Ok(etcd.range(prefix).map(drop)?))
    })?;
    let lease = etcd.grant_lease(3600)?;
    row("renewal of a lease", &mut || Ok(etcd.renew_lease(lease).map(drop)?))?;
    let records = joined(&etcd, lease)?;
    row("a fenced change", &mut || {
        let put = Op::put(b"/comity/served/srv/projects/export-0000".to_vec(), b"x y".to_vec());
        ensure!(records.change_if(Vec::new(), &[put])?, "the fence does not hold");
        Ok(())
    })?;
    println!();
    weigh_records(member, &records, if quick { RECORDS / 10 } else { RECORDS })
}

fn folder(prefix: &str) -> Vec<u8> {
    prefix.trim_end_matches("head-").trim_end_matches("projects/export-").as_bytes().to_vec()
}

fn fill(etcd: &Etcd) -> Result<()> {
    for (prefix, count, value) in PARTS {
        let put = |number: usize| {
            Op::put(format!("{prefix}{number:04}").into_bytes(), value.as_bytes().to_vec())
        };
        let puts: Vec<Op> = (0..count).map(put).collect();
        for batch in puts.chunks(TOGETHER) {
            ensure!(etcd.transact(&[], batch)?, "etcd does not store the keys");
        }
    }
    ensure!(etcd.transact(&[], &[Op::put(CHANGES.to_vec(), Vec::new())])?, "no change is noted");
    Ok(())
}

fn print_row(
    member: &EtcdMember,
    (name, rounds): (&str, usize),
    request: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    let (before, begun) = (member.counts()?, Instant::now());
    for _ in 0..rounds {
        request().with_context(|| name.to_owned())?;
    }
    let (time, after) = (begun.elapsed(), member.counts()?);
    let each = |sum: f64| sum / rounds as f64;
    println!(
        "{name:42} {:>10.0} {:>12.0} {:>12.0}",
        each(time.as_secs_f64() * 1e6),
        each(after.microseconds(&before)),
        each(after.sent_bytes(&before))
    );
    Ok(())
}

/// Joins as a head does, whose changes are then fenced.
fn joined(etcd: &Arc<Etcd>, lease: i64) -> Result<EtcdRecords> {
    let key = b"/comity/heads/measured".to_vec();
    let put = Op::Put { key: key.clone(), value: b"measured 0".to_vec(), lease };
    let created = etcd.transact_at(&[], &[put])?.context("the head does not join")?;
    let fence = (Fence { key, created }, Duration::from_secs(10));
    Ok(EtcdRecords::new(Arc::clone(etcd), fence, "measured".to_owned()))
}

/// Stores records of clients and prints what they take.
fn weigh_records(member: &EtcdMember, records: &EtcdRecords, count: usize) -> Result<()> {
    let mut medium = records.open(1).medium;
    let server = AsServer::here()?;
    println!("{count} records of clients");
    println!("{:42} {:>10} {:>12} {:>12}", "stored", "time, us", "etcd, us", "bytes");
    let all: Vec<Record> = (0..2 * count).map(client).collect();
    let (alone, together) = all.split_at(count);
    for (name, records, batch) in
        [("one by one", alone, 1), ("a hundred in a transaction", together, TOGETHER)]
    {
        let (before, begun) = (member.counts()?, Instant::now());
        for records in records.chunks(batch) {
            let stored = medium.apply(&server, records);
            stored.map_err(|why| anyhow::anyhow!("a record is not stored: {why}"))?;
        }
        let (time, after) = (begun.elapsed(), member.counts()?);
        let each = |sum: f64| sum / count as f64;
        println!(
            "{name:42} {:>10.0} {:>12.0} {:>12.0}",
            each(time.as_secs_f64() * 1e6),
            each(after.microseconds(&before)),
            each(after.database_bytes() - before.database_bytes())
        );
    }
    println!();
    Ok(())
}

/// A client of NFSv4.1, with an owner as long as that of Linux.
fn client(number: usize) -> Record {
    let id = format!("Linux NFSv4.2 client-{number:07}.example.org").into_bytes().into();
    let (protocol, channel) = (ClientProtocol::ExchangeId, OriginChannel::Plain);
    let identity = Identity {
        principal: Principal(number as u64),
        origin: Origin::from_bytes([0; 16]),
        verifier: Verifier([0; 8]),
    };
    Record::Client(RecordedClient { protocol, channel, id }, Some(identity))
}

//! The state of the cluster, of which only what has changed is read from etcd.
//!
//! Each head looks each second. A look at an unchanged cluster is one small request: whether the
//! key of the changes is as it was, and as many heads have a lease. Every change of the keys that a
//! view is made of sets the key of the changes, except for the end of a lease, which also removes
//! the key of its head.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use comity_store::etcd::{Etcd, KeyValue, RangeChanges};

use super::drained_heads::DrainedHeads;
use super::endpoint::HeadEndpoint;
use super::export_watch::ClusterView;
use super::keys::{self, HeadRun};

/// Time after which everything is read again: an administrator may have changed keys by hand.
const TRUSTED: Duration = Duration::from_secs(60);

/// The keys and values under some prefixes, and the revision that they were read at.
#[derive(Debug, Default)]
struct StoredKeys {
    ranges: [BTreeMap<Vec<u8>, KeyValue>; 5],
    revision: i64,
}

/// The number of the heads among [`prefixes`].
const HEADS: usize = 2;

/// The prefixes of the keys that a view is made of, in the order in which they are read. The
/// exports are read after the addresses: a move changes both, and an address that is seen at its
/// new head must not be without its exports. They are read after the drained heads, too, since such
/// a head takes no export from the time of its mark on.
fn prefixes() -> [Vec<u8>; 5] {
    let served = [keys::SERVED, keys::ROOT].concat();
    let others = [keys::DRAINED, keys::ENDPOINTS, keys::HEADS, keys::ADDRESSES];
    let [drained, endpoints, heads, addresses] = others.map(<[u8]>::to_vec);
    [drained, endpoints, heads, addresses, served]
}

/// Reads the state of the cluster again and again.
#[derive(Debug, Default)]
pub(super) struct ViewReader {
    known: Option<SeenCluster>,
}

#[derive(Debug)]
struct SeenCluster {
    /// The revision of the last change, and the number of heads that have a lease.
    sign: (i64, usize),
    stored: StoredKeys,
    view: Arc<ClusterView>,
    /// The time at which everything was read.
    whole: Instant,
}

impl ViewReader {
    /// Returns the state of the cluster now.
    ///
    /// # Errors
    /// etcd does not answer.
    pub(super) fn read(&mut self, etcd: &Etcd) -> Result<Arc<ClusterView>> {
        let glance = etcd.glance(keys::CHANGES, keys::HEADS)?;
        let sign = (glance.changed, glance.count);
        if let Some(known) = &self.known
            && known.sign == sign
            && known.whole.elapsed() < TRUSTED
        {
            return Ok(Arc::clone(&known.view));
        }
        let earlier = self.known.take().filter(|known| known.whole.elapsed() < TRUSTED);
        let (stored, whole) = match earlier {
            Some(known) => (known.stored.after_changes(etcd)?, known.whole),
            None => (StoredKeys::read(etcd, glance.revision)?, Instant::now()),
        };
        let view = Arc::new(stored.view());
        self.known = Some(SeenCluster { sign, stored, view: Arc::clone(&view), whole });
        Ok(view)
    }
}

impl ClusterView {
    /// Reads all of it.
    ///
    /// # Errors
    /// etcd does not answer.
    pub(super) fn read(etcd: &Etcd) -> Result<Self> {
        Ok(StoredKeys::read(etcd, 0)?.view())
    }
}

impl StoredKeys {
    /// Reads all keys. `revision` is one that etcd has had before.
    fn read(etcd: &Etcd, revision: i64) -> Result<Self> {
        let mut read = Self { revision, ..Self::default() };
        for (range, prefix) in read.ranges.iter_mut().zip(prefixes()) {
            *range = by_key(etcd.range(&prefix)?);
        }
        Ok(read)
    }

    /// Applies what has changed since. Ranges of which keys were removed, by another cause than the
    /// end of a lease, are read again.
    fn after_changes(mut self, etcd: &Etcd) -> Result<Self> {
        let prefixes = prefixes();
        let (changes, revision) = etcd.changes(&prefixes, self.revision + 1)?;
        let counts: Vec<usize> = changes.iter().map(|it| it.count).collect();
        self.apply(changes);
        let [_, _, heads, ..] = &mut self.ranges;
        if counts.get(HEADS) != Some(&heads.len()) {
            *heads = by_key(etcd.range(keys::HEADS)?);
        }
        self.end_leases();
        for ((range, prefix), count) in self.ranges.iter_mut().zip(&prefixes).zip(counts) {
            if range.len() != count {
                *range = by_key(etcd.range(prefix)?);
            }
        }
        Ok(Self { revision, ..self })
    }

    fn apply(&mut self, changes: Vec<RangeChanges>) {
        for (range, changes) in self.ranges.iter_mut().zip(changes) {
            range.extend(by_key(changes.entries));
        }
    }

    /// Removes what has ended with the leases of heads.
    fn end_leases(&mut self) {
        let [_, endpoints, heads, addresses, served] = &mut self.ranges;
        let runs = heads.values().filter_map(|entry| HeadRun::read(&entry.value));
        let runs: BTreeSet<String> = runs.map(|head| head.run).collect();
        for range in [endpoints, addresses, served] {
            range.retain(|_, entry| run_of(entry).is_none_or(|run| runs.contains(run)));
        }
    }

    fn view(&self) -> ClusterView {
        let [drained, endpoints, heads, addresses, served] = &self.ranges;
        let drained: Vec<KeyValue> = drained.values().cloned().collect();
        ClusterView {
            heads: heads.values().filter_map(|entry| HeadRun::read(&entry.value)).collect(),
            served: served.values().filter_map(keys::read_served).collect(),
            addresses: addresses.values().filter_map(keys::read_address).collect(),
            endpoints: endpoints.values().filter_map(HeadEndpoint::read).collect(),
            drained: DrainedHeads::read(&drained),
        }
    }
}

fn by_key(entries: Vec<KeyValue>) -> BTreeMap<Vec<u8>, KeyValue> {
    entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect()
}

/// Returns the run in a value that begins with the name of a head and its run.
fn run_of(entry: &KeyValue) -> Option<&str> {
    std::str::from_utf8(&entry.value).ok()?.split(' ').nth(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::Ipv4Addr;
    use std::path::PathBuf;

    use comity_store::etcd::Op;

    use super::super::etcd_server::EtcdServer;
    use super::super::head::note_of_change;
    use super::*;

    /// A head that has joined.
    struct Joined {
        run: HeadRun,
        lease: i64,
    }

    impl Joined {
        fn put(&self, key: Vec<u8>) -> Op {
            Op::Put { key, value: self.run.value(), lease: self.lease }
        }
    }

    fn change(etcd: &Etcd, operation: Op) {
        assert!(etcd.transact(&[], &[operation, note_of_change()]).unwrap());
    }

    fn join(etcd: &Etcd, name: &str) -> Joined {
        let lease = etcd.grant_lease(60).unwrap();
        let run = HeadRun { name: name.to_owned(), run: format!("{lease:016x}") };
        let joined = Joined { run, lease };
        change(etcd, joined.put(keys::head(name)));
        let key = "ed25519:AAxZJxEvu5tMdEDLymqeQHL+vaH27JgVl8AWX7czThk=";
        let value = format!("{name} {} 192.0.2.1 2049 {key}", joined.run.run).into_bytes();
        change(etcd, Op::Put { key: keys::endpoint(name), value, lease });
        joined
    }

    fn path(number: usize) -> PathBuf {
        format!("/srv/{number}").into()
    }

    /// Reads what has changed, and compares that with all that there is.
    fn read(reader: &mut ViewReader, etcd: &Etcd) -> Arc<ClusterView> {
        let view = reader.read(etcd).unwrap();
        assert_eq!(*view, ClusterView::read(etcd).unwrap());
        view
    }

    #[test]
    fn a_view_that_is_read_in_parts_is_what_there_is() {
        let Some(server) = EtcdServer::start() else { return };
        let etcd = Etcd::new(&[server.address()], None, Duration::from_secs(5)).unwrap();
        let mut reader = ViewReader::default();
        let heads = ["a", "b", "c"].map(|name| join(&etcd, name));
        for (number, head) in heads.iter().cycle().take(9).enumerate() {
            change(&etcd, head.put(keys::served(&path(number))));
            read(&mut reader, &etcd);
        }
        let address = keys::address(Ipv4Addr::new(192, 0, 2, 7).into());
        change(&etcd, heads[1].put(address.clone()));
        assert_eq!(read(&mut reader, &etcd).addresses.len(), 1);
        // A move, a mark, a reason, and the removal of all three.
        change(&etcd, heads[2].put(keys::served(&path(0))));
        change(&etcd, Op::put(keys::drained("a"), Vec::new()));
        let (key, value) = (keys::staying("a", &path(3)), b"busy".to_vec());
        change(&etcd, Op::Put { key, value, lease: heads[0].lease });
        assert!(read(&mut reader, &etcd).drained.contains("a"));
        change(&etcd, Op::Delete(address));
        change(&etcd, Op::Delete(keys::drained("a")));
        assert!(read(&mut reader, &etcd).addresses.is_empty());
        // A head fails, and one joins under its name before anybody looks.
        etcd.revoke_lease(heads[0].lease).unwrap();
        let again = join(&etcd, "a");
        assert_eq!(read(&mut reader, &etcd).served.len(), 7);
        change(&etcd, again.put(keys::served(&path(3))));
        etcd.revoke_lease(heads[1].lease).unwrap();
        let view = read(&mut reader, &etcd);
        assert_eq!((view.heads.len(), view.served.len()), (2, 5));
    }

    #[test]
    fn nothing_is_read_again_while_nothing_changes() {
        let Some(server) = EtcdServer::start() else { return };
        let etcd = Etcd::new(&[server.address()], None, Duration::from_secs(5)).unwrap();
        let (mut reader, head) = (ViewReader::default(), join(&etcd, "a"));
        let first = read(&mut reader, &etcd);
        // Records of clients are no change.
        etcd.transact(&[], &[Op::put(b"/comity/records/0/client/00".to_vec(), Vec::new())])
            .unwrap();
        assert!(Arc::ptr_eq(&first, &read(&mut reader, &etcd)));
        etcd.revoke_lease(head.lease).unwrap();
        assert!(read(&mut reader, &etcd).heads.is_empty(), "the end of a lease is a change");
    }
}

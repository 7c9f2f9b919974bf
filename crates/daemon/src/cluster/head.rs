//! This head joins the cluster, and leaves it.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use comity_export::derived_key;
use comity_store::etcd::{Compare, Etcd, EtcdError, KeyValue, Op, TlsSettings};
use comity_store::{EtcdRecords, Fence, OpenMedium};
use comity_tls::client::{ServiceFiles, ServiceTls};

use super::keys::{self, HeadRun};
use crate::head_lease::HeadLease;
use crate::options::ClusterOptions;

/// Time between two attempts to join under a name that another run still has.
const PAUSE: Duration = Duration::from_millis(200);

/// A head that has joined the cluster.
pub(crate) struct Head {
    pub(super) etcd: Arc<Etcd>,
    pub(super) run: HeadRun,
    pub(super) lease: Arc<HeadLease>,
    /// The records of this run, by which all changes are fenced.
    pub(super) records: EtcdRecords,
    /// A number that is greater than those of all earlier runs of heads.
    starts: u32,
    lease_seconds: u32,
}

impl Head {
    /// Joins the cluster under the name of the options; `key` is the key of the handles.
    ///
    /// # Errors
    /// etcd cannot be reached, another head has the name, or the heads have other keys.
    pub(crate) fn join(options: &ClusterOptions, key: &[u8; 16]) -> Result<Arc<Self>> {
        let ClusterOptions { etcd: addresses, etcd_tls, head: name, lease_seconds } = options;
        let patience = Duration::from_secs((*lease_seconds).into()) / 10;
        let tls = etcd_tls.clone().map(tls_settings).transpose()?;
        let etcd = Etcd::new(addresses, tls, patience)?;
        let etcd = Arc::new(etcd.beginning_with(number_of(name)));
        let reached = || format!("the cluster of {} cannot be joined", etcd.name());
        check_agreement(&etcd, key).with_context(reached)?;
        let lease = Arc::new(HeadLease::ask(&etcd, *lease_seconds).with_context(reached)?);
        let run = HeadRun { name: name.clone(), run: format!("{:016x}", lease.id) };
        let created = register(&etcd, &run, &lease, Duration::from_secs((*lease_seconds).into()));
        let created = created.with_context(reached)?;
        let fence = Fence { key: keys::head(name), created };
        // The process ends when the lease does: that is a little later.
        let patience = lease.usable();
        let records = EtcdRecords::new(Arc::clone(&etcd), (fence, patience), run.run.clone());
        // The revision grows with each run. A counter would have all heads of a large cluster that
        // start together change one key in turn, while their leases end.
        let starts = created as u32;
        lease.keep(&etcd)?;
        tracing::info!(head = %name, run = %run.run, "joined the cluster of {}", etcd.name());
        let lease_seconds = *lease_seconds;
        Ok(Arc::new(Self { etcd, run, lease, records, starts, lease_seconds }))
    }

    /// Returns the medium for the records of clients.
    pub(crate) fn medium(&self) -> OpenMedium {
        self.records.open(self.starts)
    }

    /// Does operations on the keys that a view of the cluster is made of, as
    /// [`EtcdRecords::change_if`] does them, and tells the heads.
    pub(super) fn change_cluster_if(
        &self,
        compare: Vec<Compare>,
        operations: &[Op],
    ) -> Result<bool, EtcdError> {
        self.records.change_if(compare, &[operations, &[note_of_change()]].concat())
    }

    /// Returns the lease of this head.
    pub(crate) fn lease(&self) -> Arc<HeadLease> {
        Arc::clone(&self.lease)
    }

    /// Returns the length of the lease in etcd.
    pub(super) fn lease_length(&self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }

    /// Leaves the cluster: other heads take over the exports at once. Nothing may be served any
    /// more.
    pub(crate) fn leave(&self) {
        if let Err(error) = self.etcd.revoke_lease(self.lease.id) {
            tracing::warn!("other heads wait until the lease of this one is over: {error}");
        }
    }
}

/// Returns the operation by which a change tells heads that there is something to read.
pub(super) fn note_of_change() -> Op {
    Op::put(keys::CHANGES.to_vec(), Vec::new())
}

/// Returns a number for the name of a head, by which the heads divide themselves among the members
/// of etcd.
fn number_of(name: &str) -> usize {
    name.bytes().fold(0, |number: usize, byte| number.wrapping_mul(31).wrapping_add(byte.into()))
}

/// Reads the files for TLS with etcd; they are read again when they have changed.
fn tls_settings(files: ServiceFiles) -> Result<TlsSettings> {
    let tls = ServiceTls::read(files).context("TLS with etcd")?;
    Ok(Box::new(move || tls.config()))
}

/// Checks that all heads have the same format of the keys in etcd, and the same key of handles.
fn check_agreement(etcd: &Etcd, key: &[u8; 16]) -> Result<()> {
    let digest = u128::from_be_bytes(derived_key(key, "cluster digest"));
    ensure!(
        agrees(etcd, (keys::FORMAT, keys::FORMAT_OF_THIS_VERSION))?,
        "the keys in etcd are of another version of comity: run the same version at all heads"
    );
    ensure!(
        agrees(etcd, (keys::HANDLE_KEY, format!("{digest:032x}").as_bytes()))?,
        "handle.key in the state folder is not that of the other heads, so that handles of \
         clients would not be good here: copy the file from another head"
    );
    Ok(())
}

/// Returns whether a key has this value; the first head stores it.
fn agrees(etcd: &Etcd, (key, value): (&[u8], &[u8])) -> Result<bool> {
    let put = Op::put(key.to_vec(), value.to_vec());
    etcd.transact(&[Compare::Created(key.to_vec(), 0)], &[put])?;
    Ok(etcd.get(key)?.is_some_and(|stored| stored.value == value))
}

/// Makes the key of this head; returns the revision in which it was made. The key of an earlier run
/// under the same name is awaited: it ends with the lease of that run.
fn register(etcd: &Etcd, run: &HeadRun, lease: &HeadLease, length: Duration) -> Result<i64> {
    let (key, until) = (keys::head(&run.name), Instant::now() + length * 2);
    let put = Op::Put { key: key.clone(), value: run.value(), lease: lease.id };
    let puts = [put, note_of_change()];
    let mut is_told = false;
    loop {
        etcd.transact(&[Compare::Created(key.clone(), 0)], &puts)?;
        match etcd.get(&key)? {
            Some(KeyValue { value, created, .. }) if value == run.value() => return Ok(created),
            _ if Instant::now() > until => bail!(
                "another server is the head {}: give each head a name of its own with --head",
                run.name
            ),
            _ => {}
        }
        if !std::mem::replace(&mut is_told, true) {
            tracing::info!(head = %run.name, "waiting for the end of an earlier run of this head");
        }
        lease.renew(etcd)?;
        thread::sleep(PAUSE);
    }
}

//! The medium that is etcd. Its keys are in docs/formats.md.
//!
//! Each run of a head of a cluster has records of its own, under the number of the run. Other heads
//! read them when they take over an export of a head that has failed.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use comity_state::{ClientProtocol, FileKey, Identity, Record, RecordedClient, Recovered};
use comity_vfs::AsServer;

use crate::etcd::{Compare, Etcd, EtcdError, Op};
use crate::key;
use crate::medium::{Medium, MediumError, OpenMedium};

/// Operations in one transaction: etcd takes 128 unless it is configured otherwise.
const OPERATIONS_MAX: usize = 100;

/// The records of all runs.
const RECORDS: &str = "/comity/records/";

/// The key of a run that each of its changes sets.
const TURN: &str = "turn";

/// Time between two attempts to store records.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum FencedError {
    /// The head has lost its lease, so that it may change nothing.
    #[error("this head has lost its lease in etcd")]
    Fenced,
    /// etcd did not do it, or did not answer.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
}

/// The condition under which a head may change the store: its key exists since it has joined.
#[derive(Debug, Clone)]
pub struct Fence {
    /// The key of the head, which ends with the lease of the head.
    pub key: Vec<u8>,
    /// The revision in which this run has made it.
    pub created: i64,
}

impl Fence {
    fn compare(&self) -> Compare {
        Compare::Created(self.key.clone(), self.created)
    }
}

/// The records of a run of a head, in etcd.
#[derive(Clone)]
pub struct EtcdRecords {
    etcd: Arc<Etcd>,
    fence: Fence,
    run: String,
    /// Time for which records are stored again and again while etcd does not answer.
    patience: Duration,
    /// The revision of the last change, unless it is not known whether that was made.
    turn: Arc<Mutex<Option<i64>>>,
}

/// The records of a run, and the exports of which some of its clients may reclaim nothing.
#[derive(Debug, Default)]
pub struct RunRecords {
    /// The clients, and the files of which each may reclaim nothing.
    pub recovered: Recovered,
    /// The clients that may reclaim nothing in the export that was asked for.
    pub lost: Vec<RecordedClient>,
}

impl EtcdRecords {
    /// Makes the records of the run with this name, to which `fence` belongs. While etcd does not
    /// answer, records are tried again for the time `patience`.
    #[must_use]
    pub fn new(etcd: Arc<Etcd>, (fence, patience): (Fence, Duration), run: String) -> Self {
        Self { etcd, fence, run, patience, turn: Arc::default() }
    }

    /// Opens them as the medium of a store. The run has just begun, so that there are none, and
    /// `starts` is the number of starts of all heads.
    #[must_use]
    pub fn open(&self, starts: u32) -> OpenMedium {
        OpenMedium { medium: Box::new(self.clone()), starts, known: Recovered::new() }
    }

    /// Does operations in their order, while the head has its lease. Operations that fit into one
    /// transaction are done together. Without operations etcd is not asked.
    ///
    /// # Errors
    /// [`FencedError`]. The first of the operations may have been done then.
    pub fn change(&self, operations: Vec<Op>) -> Result<(), FencedError> {
        if operations.is_empty() {
            return Ok(());
        }
        let mut batch: Vec<Op> = Vec::new();
        for operation in operations {
            let is_full = batch.len() >= OPERATIONS_MAX;
            if is_full || batch.iter().any(|it| it.meets(&operation)) {
                self.commit(&std::mem::take(&mut batch))?;
            }
            batch.push(operation);
        }
        self.commit(&batch)
    }

    fn commit(&self, batch: &[Op]) -> Result<(), FencedError> {
        self.change_if(Vec::new(), batch)?.then_some(()).ok_or(FencedError::Fenced)
    }

    /// Does operations together, if all comparisons hold and the head has its lease; returns
    /// whether that was so. Each change takes the next turn, so that one which was given up cannot
    /// be made after later ones.
    ///
    /// # Errors
    /// [`EtcdError`]. It is not known then whether they were done.
    pub fn change_if(&self, mut compare: Vec<Compare>, batch: &[Op]) -> Result<bool, EtcdError> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let operations = [batch, &[Op::put(self.key(&[TURN]), Vec::new())]].concat();
        compare.push(self.fence.compare());
        loop {
            let last = turn.take().map_or_else(|| self.last_turn(), Ok)?;
            compare.push(Compare::Changed(self.key(&[TURN]), last));
            *turn = self.etcd.transact_at(&compare, &operations)?;
            compare.pop();
            if turn.is_some() {
                return Ok(true);
            }
            // A change that was given up may have been made meanwhile.
            if *turn.insert(self.last_turn()?) == last {
                return Ok(false);
            }
        }
    }

    /// Reads the revision of the last change; 0 if there was none.
    fn last_turn(&self) -> Result<i64, EtcdError> {
        Ok(self.etcd.get(&self.key(&[TURN]))?.map_or(0, |entry| entry.changed))
    }

    /// Notes what clients of earlier runs may not reclaim: another head that takes the
    /// export over may not read the records of these runs any more.
    ///
    /// # Errors
    /// [`FencedError`].
    pub fn note_losses(&self, export: &Path, earlier: &RunRecords) -> Result<(), FencedError> {
        let records = earlier.recovered.records();
        let revoked = records.filter(|it| matches!(it, Record::Revoked(..)));
        let revoked = revoked.flat_map(|record| self.operations(&record));
        self.change(revoked.collect())?;
        self.note_lost(export, &earlier.lost)
    }

    /// Notes that clients may not reclaim anything in an export, until they complete their reclaims
    /// of all file systems anew.
    ///
    /// # Errors
    /// [`FencedError`].
    pub fn note_lost(&self, export: &Path, lost: &[RecordedClient]) -> Result<(), FencedError> {
        let note = |client: &RecordedClient| Op::put(self.lost_key(client, export), Vec::new());
        self.change(lost.iter().map(note).collect())
    }

    /// Ends for some clients what [`EtcdRecords::note_lost`] has noted: they have new state.
    ///
    /// # Errors
    /// [`FencedError`].
    pub fn forget_lost(
        &self,
        export: &Path,
        clients: &[RecordedClient],
    ) -> Result<(), FencedError> {
        let forget = |client: &RecordedClient| Op::Delete(self.lost_key(client, export));
        self.change(clients.iter().map(forget).collect())
    }

    fn lost_key(&self, client: &RecordedClient, export: &Path) -> Vec<u8> {
        let export = export.as_os_str().as_encoded_bytes();
        self.key(&["lost", &hex(&key::of_client(client)), &hex(export)])
    }

    fn key(&self, parts: &[&str]) -> Vec<u8> {
        key_of(&self.run, parts)
    }

    fn operations(&self, record: &Record) -> Vec<Op> {
        match record {
            Record::Client(client, identity) => {
                let mut all = vec![self.put_client(client, *identity)];
                if client.protocol == ClientProtocol::ExchangeId {
                    all.extend(self.without_losses(&hex(&key::of_client(client))));
                }
                all
            }
            Record::Arrived(client, identity) => vec![self.put_client(client, *identity)],
            Record::Forget(client) => {
                let name = hex(&key::of_client(client));
                let mut all = vec![Op::Delete(self.key(&["client", &name]))];
                all.extend(self.without_losses(&name));
                all
            }
            Record::Revoked(client, file) => {
                vec![Op::put(self.revoked_key(client, file), Vec::new())]
            }
            Record::Unrevoked(client, file) => vec![Op::Delete(self.revoked_key(client, file))],
            Record::RevocationsKnown(client) => {
                vec![self.without("revoked", &hex(&key::of_client(client)))]
            }
            Record::SizeOpen(file) => {
                let value = hex(&key::of_export(file)).into_bytes();
                vec![Op::put(self.key(&["size", &hex(&key::of_file(file))]), value)]
            }
            Record::SizeKnown(file) => {
                vec![Op::Delete(self.key(&["size", &hex(&key::of_file(file))]))]
            }
        }
    }

    fn put_client(&self, client: &RecordedClient, identity: Option<Identity>) -> Op {
        let value = hex(&key::of_identity(identity)).into_bytes();
        Op::put(self.key(&["client", &hex(&key::of_client(client))]), value)
    }

    fn revoked_key(&self, client: &RecordedClient, file: &FileKey) -> Vec<u8> {
        self.key(&["revoked", &hex(&key::of_client(client)), &hex(&key::of_file(file))])
    }

    /// Removes what a client may not reclaim.
    fn without_losses(&self, name: &str) -> [Op; 2] {
        ["revoked", "lost"].map(|kind| self.without(kind, name))
    }

    fn without(&self, kind: &str, name: &str) -> Op {
        Op::DeletePrefix(self.key(&[kind, name, ""]))
    }

    /// Removes the clients and sizes that all that is known does not have. Losses are kept,
    /// because those of earlier runs are not known.
    fn remove_others(&self, known: &[Op]) -> Result<(), FencedError> {
        let known: HashSet<&[u8]> = known.iter().map(Op::key).collect();
        let losses = ["lost", "revoked"].map(|kind| self.key(&[kind, ""]));
        let stored = self.etcd.range(&self.key(&[""]))?;
        let is_loss = |key: &[u8]| losses.iter().any(|prefix| key.starts_with(prefix));
        let turn = self.key(&[TURN]);
        let is_other = |key: &[u8]| *key != *turn && !is_loss(key) && !known.contains(key);
        let others = stored.into_iter().filter(|entry| is_other(&entry.key));
        self.change(others.map(|entry| Op::Delete(entry.key)).collect())
    }
}

impl Medium for EtcdRecords {
    fn name(&self) -> String {
        self.etcd.name()
    }

    fn apply(&mut self, _: &AsServer, records: &[Record]) -> Result<(), MediumError> {
        let operations = records.iter().flat_map(|record| self.operations(record));
        let (operations, begun) = (operations.collect::<Vec<_>>(), Instant::now());
        loop {
            match self.change(operations.clone()) {
                Err(FencedError::Etcd(EtcdError::Silent { .. }))
                    if begun.elapsed() < self.patience =>
                {
                    thread::sleep(PAUSE);
                }
                changed => return Ok(changed?),
            }
        }
    }

    fn replace(&mut self, _: &AsServer, known: &Recovered) -> Result<(), MediumError> {
        let is_put = |it: &Op| matches!(it, Op::Put { .. });
        let all = known.records().flat_map(|record| self.operations(&record)).filter(is_put);
        let all: Vec<Op> = all.collect();
        self.change(all.clone())?;
        Ok(self.remove_others(&all)?)
    }
}

/// Reads the records of the runs of an export, in their order. Clients that have lost their state
/// of it may reclaim nothing, although a later run may have a record of them.
///
/// # Errors
/// [`EtcdError`].
pub fn read_runs(etcd: &Etcd, runs: &[String], export: &Path) -> Result<RunRecords, EtcdError> {
    let mut all = RunRecords::default();
    for run in runs {
        let read = read_run(etcd, run, export)?;
        all.recovered.join(read.recovered);
        all.lost.extend(read.lost);
    }
    let lost = all.lost.iter().cloned().map(Record::Forget);
    lost.for_each(|record| all.recovered.apply(record));
    Ok(all)
}

/// Reads the records of a run, for an export that it has served.
///
/// # Errors
/// [`EtcdError`].
pub fn read_run(etcd: &Etcd, run: &str, export: &Path) -> Result<RunRecords, EtcdError> {
    let prefix = key_of(run, &[""]);
    let export = hex(export.as_os_str().as_encoded_bytes());
    let mut read = RunRecords::default();
    // "client" comes before the other kinds, as revocations need it.
    for entry in etcd.range(&prefix)? {
        let rest = entry.key.strip_prefix(&*prefix).unwrap_or_default();
        let parts: Vec<&[u8]> = rest.split(|byte| *byte == b'/').collect();
        match (record(&parts, &entry.value), &parts[..]) {
            (Some(record), _) => read.recovered.apply(record),
            (None, [b"lost", client, lost]) if *lost == export.as_bytes() => {
                read.lost.extend(unhex(client).and_then(|client| key::client(&client)));
            }
            // It cannot be read which file the client must not reclaim.
            (None, [b"revoked", client, ..]) => {
                read.lost.extend(unhex(client).and_then(|client| key::client(&client)));
            }
            _ => {}
        }
    }
    Ok(read)
}

/// Returns the record that the end of a key and its value encode.
fn record(parts: &[&[u8]], value: &[u8]) -> Option<Record> {
    match parts {
        [b"client", client] => {
            let client = key::client(&unhex(client)?)?;
            let identity = key::identity(&unhex(value)?, client.channel)?;
            Some(Record::Client(client, identity))
        }
        [b"revoked", client, file] => {
            Some(Record::Revoked(key::client(&unhex(client)?)?, key::file(&unhex(file)?)?))
        }
        [b"size", file] => Some(Record::SizeOpen(key::file_in(&unhex(file)?, &unhex(value)?)?)),
        _ => None,
    }
}

/// Returns the runs that have records.
///
/// # Errors
/// [`EtcdError`].
pub fn stored_runs(etcd: &Etcd) -> Result<BTreeSet<String>, EtcdError> {
    let names = etcd.folders(RECORDS.as_bytes())?.into_iter();
    // A name that is no text is not of a run.
    Ok(names.filter_map(|name| String::from_utf8(name).ok()).collect())
}

/// Removes the records of runs that no export needs any more.
///
/// # Errors
/// [`FencedError`].
pub fn remove_runs(records: &EtcdRecords, runs: &BTreeSet<String>) -> Result<(), FencedError> {
    records.change(runs.iter().map(|run| Op::DeletePrefix(key_of(run, &[""]))).collect())
}

fn key_of(run: &str, parts: &[&str]) -> Vec<u8> {
    format!("{RECORDS}{run}/{}", parts.join("/")).into_bytes()
}

/// Writes bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads hexadecimal digits.
fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digits = std::str::from_utf8(text).ok().filter(|text| text.len().is_multiple_of(2))?;
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_are_written() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(hex(&bytes).as_bytes()), Some(bytes));
        for text in [&b"0"[..], b"0g", b"\xff\xff", "\u{e9}".as_bytes()] {
            assert_eq!(unhex(text), None);
        }
    }
}

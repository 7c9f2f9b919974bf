//! This head takes over an export that has no head, and ends the grace period of the export.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use comity_export::{ExportId, ExportMark, Plan, Whereabouts};
use comity_state::{EndingGrace, Record, RecordedClient};
use comity_store::etcd::{Compare, Op};
use comity_store::read_runs;

use super::addresses;
use super::export_watch::ClusterParts;
use super::head::Head;
use super::keys;
use super::suitable::unsuitable;
use crate::configuration::PlanTurn;
use crate::statd;

/// Exports that are taken with one reading of the configuration. A move waits meanwhile.
const TOGETHER_MAX: usize = 64;

/// Time for which exports are taken by one view of the cluster: other heads may have joined since.
const TAKING: Duration = Duration::from_secs(1);

/// Takes exports over.
pub(super) struct Takeover<'p>(pub(super) &'p ClusterParts);

impl Takeover<'_> {
    /// Takes exports for some time, at least those of one group; returns whether none is left then.
    /// If they cannot be served together, each is tried alone: one must not keep others from it.
    pub(super) fn take_all(
        &self,
        paths: &[PathBuf],
        (moves, is_drained): (u64, bool),
    ) -> Result<bool> {
        let (begun, mut taken) = (Instant::now(), Ok(()));
        for group in paths.chunks(TOGETHER_MAX) {
            if begun.elapsed() > TAKING {
                return taken.map(|()| false);
            }
            let Some(turn) = self.0.turn_after(moves) else { return taken.map(|()| true) };
            let planned = self.plan(&turn, group);
            for path in group {
                let plan = match (&planned, group) {
                    (Ok(planned), _) => {
                        Ok(self.0.exports.current().adopting(planned, std::slice::from_ref(path)))
                    }
                    (Err(why), [_]) => Err(anyhow!("{why:#}")),
                    (Err(_), _) => self.plan(&turn, std::slice::from_ref(path)),
                };
                let one = plan.and_then(|plan| self.take(&turn, (path, plan), is_drained));
                taken = one.and(taken);
            }
        }
        taken.map(|()| true)
    }

    /// Takes an export, unless another head is faster, or this head has been drained since etcd was
    /// read (it was `is_drained` then). The plan is made first: an export that cannot be served
    /// here is left to others.
    fn take(
        &self,
        turn: &PlanTurn<'_>,
        (path, plan): (&Path, Plan),
        is_drained: bool,
    ) -> Result<()> {
        let ClusterParts { head, .. } = self.0;
        check_mark(head, path, &plan)?;
        let address = address_of(&plan, path);
        if !address.map_or(Ok(true), |address| addresses::claim(head, address))? {
            return Ok(());
        }
        let condition = (!is_drained).then(|| head.is_undrained());
        let Some(runs) = claim(head, path, condition)? else { return Ok(()) };
        self.begin(turn, (path, plan), &runs)
    }

    /// Serves an export that this head has taken, unless there were more moves than `moves` since
    /// etcd was read.
    pub(super) fn serve(&self, path: &Path, moves: u64) -> Result<()> {
        let ClusterParts { head, .. } = self.0;
        let Some(turn) = self.0.turn_after(moves) else { return Ok(()) };
        let plan = self.plan(&turn, &[path.to_owned()])?;
        let stored = head.etcd.get(&keys::runs(path))?;
        let mut runs = keys::read_runs(&stored.map(|entry| entry.value).unwrap_or_default())?;
        // The clients of this run are here, and have nothing to reclaim.
        runs.retain(|run| *run != head.run.run);
        self.begin(&turn, (path, plan), &runs)
    }

    /// Makes the plan in which these exports are here.
    pub(super) fn plan(&self, turn: &PlanTurn<'_>, paths: &[PathBuf]) -> Result<Plan> {
        let ClusterParts { table, exports, .. } = self.0;
        let loaded = turn.load(table.finder_with(paths, Whereabouts::Here));
        let loaded = loaded.map_err(|why| anyhow!("{paths:?} cannot be served: {why}"))?;
        for export in loaded.exports().iter().filter(|it| paths.iter().any(|own| own == it.path()))
        {
            let why = unsuitable(&loaded, export);
            ensure!(
                why.is_none(),
                "{} cannot be served: {}",
                export.path().display(),
                why.unwrap_or_default()
            );
        }
        Ok(exports.current().adopting(&loaded, paths))
    }

    /// Begins to serve an export, in grace if clients of these runs may have state of it.
    fn begin(
        &self,
        turn: &PlanTurn<'_>,
        (path, plan): (&Path, Plan),
        runs: &[String],
    ) -> Result<()> {
        let ClusterParts { head, table, memory, status, notes, .. } = self.0;
        let id = *plan.ids_of(&[path.to_owned()]).first().context("the export has no number")?;
        let earlier = read_runs(&head.etcd, runs, path)?;
        head.records.note_losses(path, &earlier)?;
        let recovered = earlier.recovered;
        let hosts = recovered.hosts().filter_map(statd::address).collect();
        let known: Vec<_> = recovered.records().filter_map(client_of).collect();
        head.records.note_lost(path, &notes.lost_elsewhere(path, &known))?;
        notes.forget_departed(path);
        let clients = recovered.records().filter(|it| matches!(it, Record::Client(..))).count();
        let is_in_grace = memory.engine.begin_export_grace(memory.clock.now(), id, recovered);
        if !is_in_grace {
            self.note_reclaimed(path, &[])?;
        }
        let address = address_of(&plan, path);
        table.note(path, Whereabouts::Here);
        turn.put_in_force(plan);
        self.notify(hosts, address, status.count_takeover());
        tracing::info!(export = %path.display(), clients, is_in_grace, "export taken over");
        Ok(())
    }

    /// Notifies NFSv3 hosts that had locks at the failed head that their server has restarted. They
    /// know it by the address that goes with the export.
    fn notify(&self, hosts: Vec<IpAddr>, address: Option<IpAddr>, takeover: u64) {
        let ClusterParts { news, memory, .. } = self.0;
        let mut news = news.of_peer(takeover);
        if let Some(address) = address {
            news.sources = vec![address];
        }
        statd::tell(hosts, news, memory.engine.settings().grace);
    }

    /// Ends the grace periods that are due, after etcd has stored which clients have lost the right
    /// to reclaim.
    pub(super) fn end_graces(&self) -> Result<()> {
        let ClusterParts { exports, memory, .. } = self.0;
        for EndingGrace { export, lost } in memory.engine.due_export_graces(memory.clock.now()) {
            let plan = exports.current();
            let path = plan.export(ExportId(export)).map(|it| it.path().to_owned());
            drop(plan);
            if let Some(path) = path {
                self.note_reclaimed(&path, &lost)?;
                tracing::info!(export = %path.display(), lost = lost.len(), "grace period ended");
            }
            memory.engine.end_export_grace(export);
        }
        Ok(())
    }

    /// Stores that of all runs only the clients of this one may reclaim state of an export, except
    /// for those that are lost.
    fn note_reclaimed(&self, path: &Path, lost: &[RecordedClient]) -> Result<()> {
        let head = &self.0.head;
        head.records.note_lost(path, lost)?;
        let key = keys::runs(path);
        let stored = head.etcd.get(&key)?;
        let changed = stored.as_ref().map_or(0, |entry| entry.changed);
        let earlier = stored.map(|entry| keys::read_runs(&entry.value)).transpose()?;
        let value = keys::runs_value(std::slice::from_ref(&head.run.run));
        let noted = head
            .records
            .change_if(vec![Compare::Changed(key.clone(), changed)], &[Op::put(key, value)]);
        ensure!(noted?, "the head of {} has changed", path.display());
        let earlier = earlier.into_iter().flatten().filter(|run| *run != head.run.run);
        self.0.leftovers.note(earlier);
        Ok(())
    }
}

fn address_of(plan: &Plan, path: &Path) -> Option<IpAddr> {
    plan.export_at(path)?.settings().address
}

/// Returns the client that a record lets reclaim.
fn client_of(record: Record) -> Option<RecordedClient> {
    match record {
        Record::Client(client, _) => Some(client),
        _ => None,
    }
}

/// Checks that this head sees the same files as those that served the export before, by the same
/// handles; the first one stores what they look like.
pub(super) fn check_mark(head: &Head, path: &Path, plan: &Plan) -> Result<()> {
    let ExportMark { top, volume, .. } = plan.export_mark(path).map_err(|why| anyhow!(why))?;
    let top: String = top.iter().map(|byte| format!("{byte:02x}")).collect();
    let (key, mark) = (keys::mark(path), format!("{volume:016x} {top}").into_bytes());
    head.records
        .change_if(vec![Compare::Created(key.clone(), 0)], &[Op::put(key.clone(), mark.clone())])?;
    let stored = head.etcd.get(&key)?.map(|entry| entry.value);
    ensure!(
        stored.as_ref() == Some(&mark),
        "{} does not have the files here that it has at other heads, or has other handles: serve \
         the same file system at all heads. If the export was given other files on purpose, remove \
         the key {} from etcd",
        path.display(),
        String::from_utf8_lossy(&key)
    );
    Ok(())
}

/// Makes this head that of an export; returns the runs whose clients may have state of it, or
/// `None` if another head was faster, or `condition` does not hold.
fn claim(head: &Head, path: &Path, condition: Option<Compare>) -> Result<Option<Vec<String>>> {
    let (served, runs) = (keys::served(path), keys::runs(path));
    let stored = head.etcd.get(&runs)?;
    let changed = stored.as_ref().map_or(0, |entry| entry.changed);
    let before = keys::read_runs(&stored.map(|entry| entry.value).unwrap_or_default())?;
    let mut with_this = before.clone();
    with_this.retain(|run| *run != head.run.run);
    with_this.push(head.run.run.clone());
    let mut compare =
        vec![Compare::Created(served.clone(), 0), Compare::Changed(runs.clone(), changed)];
    compare.extend(condition);
    let operations = [
        Op::Put { key: served, value: head.run.value(), lease: head.lease.id },
        Op::put(runs, keys::runs_value(&with_this)),
    ];
    Ok(head.change_cluster_if(compare, &operations)?.then_some(before))
}

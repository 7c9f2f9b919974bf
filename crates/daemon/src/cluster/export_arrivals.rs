//! The target's side of a move: another head hands exports over to this one.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use comity_export::{PeerServer, Plan, Whereabouts};
use comity_migrate::{CallFailure, MigrationTarget};
use comity_proto::migration::{LoadReply, MigrationArgs, MigrationId, SendArgs};
use comity_server::blocking;
use comity_state::{ExportedVolume, MovingFiles};
use comity_store::etcd::{Compare, Op};
use comity_store::read_run;

use super::drained_heads;
use super::export_move::{clients_of, group_of};
use super::export_watch::ClusterParts;
use super::head::Head;
use super::keys::{self, HeadRun};
use super::takeover::{Takeover, check_mark};
use crate::configuration::PlanTurn;
use crate::load::{server_load, told};
use crate::migration::{
    MigrationParts, Transfers, check_files, check_marks, hexadecimal, paths_of,
};

/// The reason against an export that another head does not serve from the same files.
const NOT_THE_SAME: &str =
    "does not have the same files there: both heads need the same file system";

/// Time between two attempts to store who serves exports.
const PAUSE: Duration = Duration::from_millis(100);

/// The state of etcd when exports are offered. It must be the same when they are taken.
struct OfferTime {
    source: HeadRun,
    address: Option<IpAddr>,
    /// The keys of the exports and of their address, with the revisions of their values, and that
    /// this head is not drained.
    unchanged: Vec<Compare>,
}

/// Takes exports over from other heads.
pub(crate) struct ExportArrivals {
    cluster: ClusterParts,
    parts: MigrationParts,
    transfers: Transfers<OfferTime>,
}

/// Exports that are about to be served here.
struct Arriving<'a> {
    paths: Vec<PathBuf>,
    address: Option<IpAddr>,
    offered: &'a OfferTime,
}

impl ExportArrivals {
    pub(crate) const fn new(cluster: ClusterParts, parts: MigrationParts) -> Self {
        Self { cluster, parts, transfers: Transfers::new() }
    }

    /// Checks that this head could take exports; returns what must still be true when it does.
    fn check(
        &self,
        from: &PeerServer,
        offer: &MigrationArgs<'_>,
    ) -> Result<OfferTime, CallFailure> {
        self.cluster.moves_refusal.map_or(Ok(()), |why| Err(CallFailure::invalid(why)))?;
        let (paths, turn) = (paths_of(offer), self.parts.turn()?);
        let plan = Takeover(&self.cluster).plan(&turn, &paths).map_err(refused)?;
        check_marks(&plan, offer, (false, NOT_THE_SAME))?;
        let address = whole_group(&plan, &paths).map_err(refused)?;
        for path in &paths {
            check_mark(&self.cluster.head, path, &plan).map_err(refused)?;
        }
        self.offer_time(from, (&paths, address)).map_err(refused)
    }

    /// Reads the keys of exports, which the source must have.
    fn offer_time(
        &self,
        from: &PeerServer,
        (paths, address): (&[PathBuf], Option<IpAddr>),
    ) -> Result<OfferTime> {
        let Head { etcd, run: own, .. } = &*self.cluster.head;
        ensure!(etcd.get(&keys::drained(&own.name))?.is_none(), drained_heads::refusal(&own.name));
        let (mut unchanged, mut source) = (vec![self.cluster.head.is_undrained()], None);
        for path in paths {
            let key = keys::served(path);
            let stored = etcd.get(&key)?;
            let at = stored.as_ref().and_then(|entry| HeadRun::read(&entry.value));
            let at = at.filter(|at| *at.name == *from.name);
            ensure!(at.is_some(), "etcd does not say that {} has {}", from.name, path.display());
            source = at;
            unchanged.push(Compare::Changed(key, stored.map_or(0, |entry| entry.changed)));
        }
        if let Some(address) = address {
            let key = keys::address(address);
            let stored = etcd.get(&key)?;
            let at = stored.as_ref().and_then(|entry| HeadRun::read(&entry.value));
            let is_theirs = at.is_none() || at == source;
            ensure!(is_theirs, "the address {address} is at another head");
            unchanged.push(Compare::Changed(key, stored.map_or(0, |entry| entry.changed)));
        }
        match source {
            Some(source) => Ok(OfferTime { source, address, unchanged }),
            None => anyhow::bail!("no export is offered"),
        }
    }

    /// Takes the exports over, with the state that was sent.
    fn complete(
        &self,
        (sent, offered): (&[u8], &OfferTime),
        offer: &MigrationArgs<'_>,
    ) -> Result<(), CallFailure> {
        let engine = &self.parts.memory.engine;
        let state = ExportedVolume::from_bytes(sent).map_err(CallFailure::invalid)?;
        let (paths, turn) = (paths_of(offer), self.parts.turn()?);
        let plan = Takeover(&self.cluster).plan(&turn, &paths).map_err(refused)?;
        let volume = check_marks(&plan, offer, (true, NOT_THE_SAME))?;
        let address = whole_group(&plan, &paths).map_err(refused)?;
        if address != offered.address {
            return Err(CallFailure::at_present("its address was changed by a reload meanwhile"));
        }
        check_files(&plan, &state, (volume, &paths))?;
        let moving = MovingFiles::of_exports(volume, &plan.ids_of(&paths)).with_address(address);
        let now = self.parts.memory.clock.now();
        let clients = engine.import_files_of(now, &state, moving.clone());
        let clients = clients.map_err(CallFailure::at_present)?;
        let arriving = Arriving { paths, address, offered };
        if let Err(why) = self.switch(&arriving, (&plan, &state)) {
            // No other state of these files is here.
            engine.forget_volume(self.parts.memory.clock.now(), moving, &[]);
            return Err(CallFailure::fault(format!("{why:#}")));
        }
        self.serve(&turn, plan, &arriving);
        tracing::info!(
            paths = ?arriving.paths, clients = clients.len(), from = %offered.source.name,
            id = hexadecimal(&offer.id), "exports taken over with their state"
        );
        Ok(())
    }

    /// Stores all that another head would need after this one, and then that this head serves the
    /// exports.
    ///
    /// # Errors
    /// Another head serves them, and this one never will by this move.
    fn switch(
        &self,
        arriving: &Arriving<'_>,
        (plan, state): (&Plan, &ExportedVolume),
    ) -> Result<()> {
        let comity_nfs4::Memory { engine, settle, .. } = &self.parts.memory;
        let is_stored = engine.is_settled(settle.as_deref());
        ensure!(is_stored, "the records of clients cannot be stored");
        for path in &arriving.paths {
            self.note_losses(path, (plan, state), &arriving.offered.source)?;
        }
        let operations = self.operations(arriving);
        let ClusterParts { head, .. } = &self.cluster;
        loop {
            match head.change_cluster_if(arriving.offered.unchanged.clone(), &operations) {
                Ok(true) => return Ok(()),
                // An earlier attempt may have been made, although its answer was lost.
                Ok(false) => match self.is_here(arriving) {
                    Ok(true) => return Ok(()),
                    Ok(false) => anyhow::bail!(
                        "their head has changed, or ended the move, or this head was drained"
                    ),
                    Err(_) => {}
                },
                Err(_) => {}
            }
            // If etcd does not answer until the lease is over, this process ends.
            thread::sleep(PAUSE);
        }
    }

    /// The changes by which this head becomes that of the exports. Only clients with records of
    /// this run may have state of them then.
    fn operations(&self, arriving: &Arriving<'_>) -> Vec<Op> {
        let head = &self.cluster.head;
        let put = |key| Op::Put { key, value: head.run.value(), lease: head.lease.id };
        let runs = || keys::runs_value(std::slice::from_ref(&head.run.run));
        let of_exports = arriving
            .paths
            .iter()
            .flat_map(|path| [put(keys::served(path)), Op::put(keys::runs(path), runs())]);
        of_exports.chain(arriving.address.map(|address| put(keys::address(address)))).collect()
    }

    fn is_here(&self, arriving: &Arriving<'_>) -> Result<bool> {
        let Some(first) = arriving.paths.first() else { return Ok(false) };
        let stored = self.cluster.head.etcd.get(&keys::served(first))?;
        Ok(stored.is_some_and(|entry| entry.value == self.cluster.head.run.value()))
    }

    /// Stores under this run which clients may reclaim nothing: those that the source has noted,
    /// and those that lost their state after they left this head with the export.
    fn note_losses(
        &self,
        path: &Path,
        (plan, state): (&Plan, &ExportedVolume),
        source: &HeadRun,
    ) -> Result<()> {
        let ClusterParts { head, notes, .. } = &self.cluster;
        let staying = clients_of(state, &plan.ids_of(&[path.to_owned()]));
        let mut noted = read_run(&head.etcd, &source.run, path)?;
        // A client that has state has got it after it lost what is noted.
        noted.lost.retain(|client| !staying.contains(client));
        head.records.note_losses(path, &noted)?;
        head.records.forget_lost(path, &staying)?;
        head.records.note_lost(path, &notes.lost_elsewhere(path, &staying))?;
        Ok(())
    }

    /// Serves exports that etcd says are here.
    fn serve(&self, turn: &PlanTurn<'_>, plan: Plan, arriving: &Arriving<'_>) {
        let ClusterParts { table, notes, memory, .. } = &self.cluster;
        for path in &arriving.paths {
            table.note(path, Whereabouts::Here);
            notes.forget_departed(path);
        }
        turn.put_in_force(plan);
        notes.add();
        self.cluster.look_again();
        if let Some(callbacks) = &memory.callbacks {
            callbacks.pump(memory.clock.now());
        }
    }
}

impl MigrationTarget for ExportArrivals {
    fn offer(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), CallFailure> {
        blocking(|| self.transfers.begin((from, offer.id), || self.check(from, offer)))
    }

    fn receive(&self, from: &PeerServer, part: &SendArgs<'_>) -> Result<(), CallFailure> {
        self.transfers.receive(from, part)
    }

    fn take(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), CallFailure> {
        self.transfers
            .take((from, &offer.id), |state, offered| self.complete((state, offered), offer))
    }

    fn load(&self) -> LoadReply {
        told(&server_load(&self.parts.load))
    }

    /// Ends the transfer. Etcd tells the outcome.
    fn outcome(&self, from: &PeerServer, id: &MigrationId) -> bool {
        self.transfers.end((from, id), || false)
    }
}

fn refused(why: anyhow::Error) -> CallFailure {
    CallFailure::invalid(format!("{why:#}"))
}

/// Checks that the exports are all those with their address; returns the address.
fn whole_group(plan: &Plan, paths: &[PathBuf]) -> Result<Option<IpAddr>> {
    let mut address = None;
    for path in paths {
        let (group, at) = group_of(plan, path)?;
        let is_whole = group.len() == paths.len() && group.iter().all(|it| paths.contains(it));
        ensure!(
            is_whole,
            "the configuration there gives {} the same address as other exports than here: give \
             all heads the same configuration, and reload it",
            path.display()
        );
        address = at;
    }
    Ok(address)
}

//! The source's side of a move: this head hands exports over to another one.
//!
//! The target decides, by one transaction in etcd, for which the keys of the exports must be
//! unchanged since the target was asked whether it could take them. As long as that transaction is
//! not made, this head has the exports; it ends the move by writing the keys again, after which the
//! transaction cannot be made any more.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use comity_export::{ExportMark, PeerServer, Plan, Whereabouts};
use comity_migrate::{MigrationClient, MigrationError};
use comity_proto::migration::MigrationId;
use comity_state::{ClientProtocol, ExportedClient, ExportedVolume, MovingFiles, RecordedClient};
use comity_store::etcd::{Compare, Op};

use super::drained_heads;
use super::export_watch::{ClusterParts, ClusterView};
use super::keys::{self, HeadRun};
use crate::configuration::PlanTurn;
use crate::migration::{Frozen, MigrationParts, MigrationStep, Moved, offer_of, rehearse};
use crate::state_folder::random;

/// Most exports that move together: a transaction of etcd has at most 128 operations, and each
/// export takes two.
const GROUP_MAX: usize = 60;

/// Time between two questions to etcd about the outcome.
const PAUSE: Duration = Duration::from_millis(100);

/// Time after which a head has seen each head that is up.
const UNSEEN: Duration = Duration::from_secs(3);

/// Exports that are to move to another head.
pub(super) struct ExportMove {
    cluster: ClusterParts,
    parts: MigrationParts,
    to: HeadRun,
    peer: PeerServer,
    id: MigrationId,
    pub(super) paths: Vec<PathBuf>,
    /// The address that goes with the exports.
    address: Option<IpAddr>,
}

impl ExportMove {
    /// Makes the move of an export, and of those that have the same address, to another head.
    ///
    /// # Errors
    /// The reason why they cannot move, and what to do.
    pub(super) fn new(
        (cluster, parts): (&ClusterParts, &MigrationParts),
        (path, to): (&Path, &str),
    ) -> Result<Self> {
        cluster.moves_refusal.map_or(Ok(()), |why| Err(anyhow!(why)))?;
        let plan = Arc::clone(&parts.exports.current());
        let view = ClusterView::read(&cluster.head.etcd)?;
        let (paths, address) = group_of(&plan, path)?;
        paths.iter().try_for_each(|path| is_here(cluster, &view, path))?;
        let (to, peer) = view.target(&cluster.head.run, to)?;
        let (cluster, parts, id) = (cluster.clone(), parts.clone(), random()?);
        let moving = Self { cluster, parts, to, peer, id, paths, address };
        moving.check(&plan)?;
        Ok(moving)
    }

    /// Returns the marks of the exports, and the files whose state moves.
    fn check(&self, plan: &Plan) -> Result<(Vec<ExportMark>, MovingFiles)> {
        let marks = self.paths.iter().map(|path| plan.export_mark(path));
        let marks: Vec<_> = marks.collect::<Result<_, _>>().map_err(|why| anyhow!(why))?;
        let volume = marks.first().context("no export is named")?.volume;
        ensure!(
            marks.iter().all(|mark| mark.volume == volume),
            "the exports with the address {} are of several file systems, and cannot move \
             together: give those of each file system an address of their own",
            self.address.map(|it| it.to_string()).unwrap_or_default()
        );
        let files = MovingFiles::of_exports(volume, &plan.ids_of(&self.paths));
        Ok((marks, files.with_address(self.address)))
    }

    /// Asks the other head whether it could take the exports.
    ///
    /// # Errors
    /// Its reason, or that it cannot be reached.
    pub(super) fn try_out(&self) -> Result<()> {
        let (marks, _) = self.check(&self.parts.exports.current())?;
        let mut target = self.offered(&marks)?;
        target.outcome(self.id)?;
        Ok(())
    }

    /// Moves the exports.
    ///
    /// # Errors
    /// The reason why the exports were not moved. They are served here as before.
    pub(super) fn carry_out(&self, progress: &MigrationStep) -> Result<Moved> {
        progress.begin("asking the head")?;
        let (marks, moving) = self.check(&self.parts.exports.current())?;
        let mut target = self.offered(&marks)?;
        let moved = self.hand_over(&mut target, &moving, progress);
        if moved.is_err() {
            // The target drops the transfer; if the call fails, when the next one begins.
            let _ = target.outcome(self.id);
        }
        moved
    }

    /// Offers the exports. The target refuses the calls of a head that it has not seen yet, and
    /// looks each second.
    fn offered(&self, marks: &[ExportMark]) -> Result<MigrationClient> {
        let begun = Instant::now();
        loop {
            match self.offered_once(marks) {
                Err(why) if begun.elapsed() < UNSEEN && !is_reason(&why) => thread::sleep(PAUSE),
                Err(why) => return Err(why).with_context(|| format!("{} refuses", self.to.name)),
                Ok(target) => return Ok(target),
            }
        }
    }

    fn offered_once(&self, marks: &[ExportMark]) -> Result<MigrationClient> {
        let mut target = MigrationClient::connect(&self.peer, self.parts.identity()?)?;
        target.offer(&offer_of(self.id, &self.paths, marks))?;
        Ok(target)
    }

    fn hand_over(
        &self,
        target: &mut MigrationClient,
        moving: &MovingFiles,
        progress: &MigrationStep,
    ) -> Result<Moved> {
        let check = |exported: &ExportedVolume| self.check_state(exported);
        progress.begin("recalling what cannot move")?;
        rehearse(&self.parts, (moving, &check), progress)?;
        let turn = self.parts.reload.turn();
        progress.begin("freezing")?;
        let mut frozen = Frozen::begin(&self.parts, &turn, &self.paths)?;
        let (marks, moving) = self.check(frozen.plan())?;
        let exported = frozen.state((&moving, &check))?;
        let state = exported.to_bytes()?;
        progress.begin("sending the state of clients")?;
        target.send(self.id, &state, frozen.until())?;
        let away = self.away(frozen.plan())?;
        progress.begin(MigrationStep::HANDING_OVER)?;
        frozen.set_leaving(true);
        let taken = target.take(&offer_of(self.id, &self.paths, &marks));
        if let Err(why) = self.settle(taken) {
            frozen.set_leaving(false);
            return Err(why);
        }
        self.leave(&turn, (away, &moving), &exported);
        let states = exported.clients.iter().map(|client| client.states.len()).sum();
        let (clients, state_bytes) = (exported.clients.len(), state.len());
        Ok(Moved { clients, states, state_bytes, frozen: frozen.elapsed() })
    }

    /// Checks that the clients will be able to use their state at the other head.
    fn check_state(&self, exported: &ExportedVolume) -> Result<()> {
        let mut clients = exported.clients.iter();
        let host = clients.find(|client| client.protocol == ClientProtocol::Nlm);
        match host.filter(|_| self.address.is_none()) {
            None => Ok(()),
            Some(host) => bail!(
                "the host {} holds locks by NFSv3, which has no way to follow an export: give the \
                 export an address that goes with it (address=), have the programs of the host \
                 release the locks, or evict it (`comity clients` shows its number)",
                String::from_utf8_lossy(&host.name.id)
            ),
        }
    }

    /// Finds out whether the target has the exports.
    ///
    /// # Errors
    /// It does not have them, and never will by this move; the reason.
    fn settle(&self, taken: Result<(), MigrationError>) -> Result<()> {
        let why = match taken {
            Ok(()) => return Ok(()),
            Err(MigrationError::Failed(_, why)) => bail!("{} refuses: {why}", self.to.name),
            Err(why) => why,
        };
        tracing::warn!(to = %self.to.name, "the target of a move has not answered: {why}");
        loop {
            match self.has_left() {
                Ok(true) => return Ok(()),
                Ok(false) if self.end().unwrap_or(false) => {
                    bail!("{}: {why}; the exports stay here", self.to.name);
                }
                // Without an answer of etcd the outcome is not known. If none comes until the lease
                // is over, this process ends.
                _ => thread::sleep(PAUSE),
            }
        }
    }

    /// Returns whether etcd says that another head has the exports. They move together. While this
    /// head has its lease, the key is missing only if another head has had it and failed since.
    fn has_left(&self) -> Result<bool> {
        let first = self.paths.first().context("no export is named")?;
        let stored = self.cluster.head.etcd.get(&keys::served(first))?;
        Ok(stored.is_none_or(|entry| entry.value != self.cluster.head.run.value()))
    }

    /// Makes the transaction of the target impossible, unless it was made; returns whether it was
    /// not.
    fn end(&self) -> Result<bool> {
        let head = &self.cluster.head;
        let (mut compare, mut operations) = (Vec::new(), Vec::new());
        for path in &self.paths {
            let key = keys::served(path);
            let stored = head.etcd.get(&key)?.filter(|entry| entry.value == head.run.value());
            let Some(stored) = stored else { return Ok(false) };
            compare.push(Compare::Changed(key.clone(), stored.changed));
            operations.push(Op::Put { key, value: head.run.value(), lease: head.lease.id });
        }
        Ok(head.change_cluster_if(compare, &operations)?)
    }

    /// The place to which callers are referred afterwards.
    fn place(&self) -> Whereabouts {
        let host = self.address.map_or_else(|| self.to.name.clone(), |it| it.to_string());
        Whereabouts::AtHost(host.into())
    }

    fn away(&self, plan: &Plan) -> Result<Plan> {
        plan.placing(&self.paths, &self.place()).map_err(|why| anyhow!(why))
    }

    /// Refers callers to the target, and forgets the state of their clients.
    fn leave(
        &self,
        turn: &PlanTurn<'_>,
        (away, moving): (Plan, &MovingFiles),
        exported: &ExportedVolume,
    ) {
        let ClusterParts { table, memory, notes, .. } = &self.cluster;
        let ids = away.ids_of(&self.paths);
        for path in &self.paths {
            let id = away.ids_of(std::slice::from_ref(path));
            notes.note_departed(path, clients_of(exported, &id));
            table.note(path, self.place());
        }
        turn.put_in_force(away);
        // Clients that use the address follow it, and are not told to look for the exports.
        let told = if self.address.is_none() { &*ids } else { &[] };
        memory.engine.forget_volume(memory.clock.now(), moving.clone(), told);
        notes.add();
        self.cluster.look_again();
        tracing::info!(paths = ?self.paths, to = %self.to.name, "exports moved");
    }
}

/// Returns whether the target has given a reason.
fn is_reason(why: &anyhow::Error) -> bool {
    matches!(why.downcast_ref(), Some(MigrationError::Failed(..)))
}

/// Returns the clients that have state of these exports.
pub(super) fn clients_of(exported: &ExportedVolume, ids: &[u32]) -> Vec<RecordedClient> {
    let is_of =
        |client: &&ExportedClient| client.states.iter().any(|it| ids.contains(&it.file.export));
    exported.clients.iter().filter(is_of).map(ExportedClient::recorded).collect()
}

/// Returns the exports that move with an export, and their address: those with the same address,
/// as an address has one head.
pub(super) fn group_of(plan: &Plan, path: &Path) -> Result<(Vec<PathBuf>, Option<IpAddr>)> {
    let export = plan.export_at(path);
    let export = export.with_context(|| format!("no export has the path {}", path.display()))?;
    let Some(address) = export.settings().address else { return Ok((vec![path.to_owned()], None)) };
    let exports = plan.exports().iter().filter(|it| it.settings().address == Some(address));
    let paths: Vec<_> = exports.map(|export| export.path().to_owned()).collect();
    ensure!(
        paths.len() <= GROUP_MAX,
        "{} exports have the address {address}, and only {GROUP_MAX} can move together",
        paths.len()
    );
    Ok((paths, Some(address)))
}

/// Checks that this head serves an export.
fn is_here(cluster: &ClusterParts, view: &ClusterView, path: &Path) -> Result<()> {
    let shown = path.display();
    match view.served.get(path) {
        None => bail!("{shown} has no head now: wait until one has taken it over"),
        Some(at) if *at != cluster.head.run => {
            bail!("{shown} is served by the head {}: run this command on its host", at.name)
        }
        Some(_) => Ok(()),
    }
}

impl ClusterView {
    /// Returns the head of this name, which is to take exports over from the head `own`.
    fn target(&self, own: &HeadRun, name: &str) -> Result<(HeadRun, PeerServer)> {
        ensure!(name != own.name, "this is the head {name}, and it serves the export already");
        let up = self.heads.iter().find(|head| head.name == name);
        let names = || self.heads.iter().map(|head| &*head.name).collect::<Vec<_>>().join(", ");
        let head = up.with_context(|| format!("no head {name} is up; those that are: {}", names()));
        let head = head?.clone();
        ensure!(!self.drained.contains(name), drained_heads::refusal(name));
        let endpoint = self.endpoints.iter().find(|it| it.head == head);
        let endpoint = endpoint.with_context(|| {
            format!(
                "the head {name} has no TLS key by which other heads know it: run it without \
                 --no-tls, and with a key that is Ed25519 or P-256"
            )
        })?;
        Ok((head, endpoint.server()))
    }
}

//! The source's side: this server hands exports over to another one.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use comity_export::{ExportMark, PeerServer, Plan, Whereabouts};
use comity_migrate::{MigrationClient, MigrationError};
use comity_proto::migration::{EXPORTS_MAX, MigrationArgs, MigrationId, OfferedExport};
use comity_state::ExportedVolume;
use comity_xdr::{Counted, Opaque};

use super::migrations::MigrationStep;
use super::moved_exports::{ExportPlace, Handover, after_seconds};
use super::warnings::warnings;
use super::{MigrationParts, check_followers, hexadecimal};
use crate::configuration::PlanTurn;
use crate::limits::{FORWARD_PATIENCE, FREEZE_PATIENCE, FREEZE_POLL, RECALL_PATIENCE, RECALL_POLL};
use crate::state_folder::random;

/// Exports that are to move to a peer.
pub(super) struct Departure {
    parts: MigrationParts,
    peer: PeerServer,
    id: MigrationId,
    paths: Vec<PathBuf>,
    /// For how many seconds calls of NFSv3 are forwarded.
    forward_seconds: Option<u64>,
}

/// The result of a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moved {
    /// The number of clients whose state was moved.
    pub(super) clients: usize,
    /// The number of their opens, locks and delegations.
    pub(super) states: usize,
    /// The length of the state in bytes.
    pub(super) state_bytes: usize,
    /// The time for which nobody served the exports.
    pub(super) frozen: Duration,
}

impl Departure {
    /// Makes the departure of exports to the peer with this name.
    ///
    /// # Errors
    /// The reason why they cannot move, and what to do.
    pub(super) fn new(parts: &MigrationParts, exports: &[PathBuf], to: &str) -> Result<Self> {
        parts.refusal.map_or(Ok(()), |why| Err(anyhow!(why)))?;
        let count = exports.len();
        ensure!((1..=EXPORTS_MAX as usize).contains(&count), "name 1 to {EXPORTS_MAX} exports");
        let plan = Arc::clone(&parts.exports.current());
        let peer = plan.peer_named(to).cloned();
        let peer = peer.with_context(|| format!("the configuration has no [[peer]] {to}"))?;
        let (parts, paths) = (parts.clone(), exports.to_vec());
        let departure = Self { parts, peer, id: random()?, paths, forward_seconds: None };
        departure.away(&plan)?;
        departure.check(&plan)?;
        Ok(departure)
    }

    /// Forwards calls of NFSv3 for so many seconds after the move.
    pub(super) fn forwarding(self, seconds: Option<u64>) -> Self {
        Self { forward_seconds: seconds, ..self }
    }

    /// Checks that the clients will be able to use their state.
    fn check_state(&self, exported: &ExportedVolume) -> Result<()> {
        Ok(check_followers(exported, self.forward_seconds.is_some())?)
    }

    /// Checks that the exports are all those that this server serves from their volume. Returns
    /// their marks, and the volume.
    fn check(&self, plan: &Plan) -> Result<(Vec<ExportMark>, u64)> {
        let marks = self.paths.iter().map(|path| plan.export_mark(path));
        let marks: Vec<_> = marks.collect::<Result<_, _>>().map_err(|why| anyhow!(why))?;
        let volume = marks.first().context("no export is named")?.volume;
        ensure!(
            marks.iter().all(|mark| mark.volume == volume),
            "the exports are of several volumes: move them one after the other"
        );
        let is_named = |path: &Path| self.paths.iter().any(|own| own == path);
        if let Some(other) = plan.exports_of(volume).find(|path| !is_named(path)) {
            let other = other.display();
            bail!("{other} is of the same volume and shares its locks: name it, too");
        }
        Ok((marks, volume))
    }

    /// The plan in which the peer serves the exports.
    fn away(&self, plan: &Plan) -> Result<Plan> {
        let away = plan.placing(&self.paths, &Whereabouts::At(self.peer.name.clone()));
        away.map_err(|why| anyhow!(why))
    }

    /// Returns warnings of what may go badly for clients.
    ///
    /// # Errors
    /// The exports cannot move.
    pub(super) fn warnings(&self) -> Result<Vec<String>> {
        let plan = Arc::clone(&self.parts.exports.current());
        let (_, volume) = self.check(&plan)?;
        let is_forwarded = self.forward_seconds.is_some();
        Ok(warnings(&self.parts, &plan, (&self.paths, volume), is_forwarded))
    }

    /// Asks the peer whether it could take the exports.
    ///
    /// # Errors
    /// Its reason, or that it cannot be reached.
    pub(super) fn try_out(&self) -> Result<()> {
        let (marks, _) = self.check(&self.parts.exports.current())?;
        let mut target = self.connect()?;
        self.offer(&mut target, &marks)?;
        target.outcome(self.id)?;
        Ok(())
    }

    /// Moves the exports.
    ///
    /// # Errors
    /// The reason why the exports were not moved. They are served here as before, unless the error
    /// says that the outcome is not known.
    pub(super) fn carry_out(&self, progress: &MigrationStep) -> Result<Moved> {
        progress.begin("asking the target")?;
        let (marks, volume) = self.check(&self.parts.exports.current())?;
        let mut target = self.connect()?;
        self.offer(&mut target, &marks)?;
        self.note_run(&mut target)?;
        let moved = self.hand_over(&mut target, volume, progress);
        if moved.is_err() {
            // This makes the target drop the transfer. If the call fails, the target drops it when
            // the next one begins.
            let _ = target.outcome(self.id);
        }
        moved
    }

    /// Notes the run of the peer, so that a restart right after the move is noticed. A peer that
    /// does not serve NFSv3 takes no locks of it.
    fn note_run(&self, target: &mut MigrationClient) -> Result<()> {
        if self.forward_seconds.is_none() {
            return Ok(());
        }
        match target.hosts(FORWARD_PATIENCE) {
            Ok(hosts) => self.parts.peer_runs.note_first(&self.peer.name, hosts.run),
            Err(MigrationError::Failed(..) | MigrationError::UnknownProcedure) => {}
            // The connection may not work any more.
            Err(why) => return Err(why.into()),
        }
        Ok(())
    }

    fn hand_over(
        &self,
        target: &mut MigrationClient,
        volume: u64,
        progress: &MigrationStep,
    ) -> Result<Moved> {
        progress.begin("recalling what cannot move")?;
        self.rehearse(volume, progress)?;
        let turn = self.parts.reload.turn();
        progress.begin("freezing")?;
        let frozen = Frozen::begin(self, &turn)?;
        let (marks, volume) = self.check(&frozen.plan)?;
        let exported = frozen.state(volume)?;
        let states = exported.clients.iter().map(|client| client.states.len()).sum();
        let (clients, state) = (exported.clients.len(), exported.to_bytes()?);
        progress.begin("sending the state of clients")?;
        target.send(self.id, &state, frozen.since + FREEZE_PATIENCE)?;
        let away = self.away(&frozen.plan)?;
        progress.begin(MigrationStep::HANDING_OVER)?;
        let leaving = frozen.leave()?;
        match target.take(&self.args(&marks)) {
            Ok(()) => {}
            Err(MigrationError::Failed(_, why)) => {
                leaving.stay();
                bail!("{} refuses: {why}", self.peer.name);
            }
            Err(why) => {
                self.parts.moved.note_unanswered(&self.paths);
                bail!(
                    "{name} was asked to take the exports, and its answer did not arrive ({why}): \
                     it may serve them now. This server does not serve them until {name} has told; \
                     it asks each second",
                    name = self.peer.name
                );
            }
        }
        let frozen = leaving.refer(away, volume);
        tracing::info!(paths = ?self.paths, peer = %self.peer.name, ?frozen, "exports moved");
        Ok(Moved { clients, states, state_bytes: state.len(), frozen })
    }

    /// Recalls what cannot move, and waits until all state could move: clients can return nothing
    /// while the exports are frozen.
    fn rehearse(&self, volume: u64, progress: &MigrationStep) -> Result<()> {
        let comity_nfs4::Memory { engine, clock, .. } = &self.parts.memory;
        engine.recall_volume(clock.now(), volume);
        let since = Instant::now();
        loop {
            match engine.export_volume(clock.now(), volume) {
                Ok(exported) => return self.check_state(&exported),
                Err(why) if since.elapsed() > RECALL_PATIENCE => bail!("{why}: try again later"),
                Err(_) => progress.check().map(|()| thread::sleep(RECALL_POLL))?,
            }
        }
    }

    fn connect(&self) -> Result<MigrationClient> {
        Ok(MigrationClient::connect(&self.peer, self.parts.identity()?)?)
    }

    fn offer(&self, target: &mut MigrationClient, marks: &[ExportMark]) -> Result<()> {
        let answer = target.offer(&self.args(marks));
        answer.with_context(|| format!("{} refuses", self.peer.name))
    }

    fn args<'a>(&'a self, marks: &'a [ExportMark]) -> MigrationArgs<'a> {
        let offered = |(path, mark): (&'a PathBuf, &'a ExportMark)| OfferedExport {
            path: Opaque(path.as_os_str().as_bytes()),
            top: Opaque(&mark.top),
            volume: mark.volume,
            fileid: mark.fileid,
            change: mark.change,
        };
        let exports = self.paths.iter().zip(marks).map(offered).collect();
        MigrationArgs { id: self.id, exports: Counted(exports) }
    }
}

/// Exports that nobody serves. They are served here again when it is dropped.
struct Frozen<'m> {
    departure: &'m Departure,
    turn: &'m PlanTurn<'m>,
    /// The plan in which they are served.
    plan: Arc<Plan>,
    since: Instant,
    is_leaving: bool,
}

impl<'m> Frozen<'m> {
    /// Makes callers wait, and waits until no call uses the exports any more.
    fn begin(departure: &'m Departure, turn: &'m PlanTurn<'m>) -> Result<Self> {
        let Departure { parts, paths, .. } = departure;
        let frozen = parts.exports.current().placing(paths, &Whereabouts::Moving);
        let frozen = frozen.map_err(|why| anyhow!(why))?;
        let (since, plan) = (Instant::now(), turn.put_in_force(frozen));
        let frozen = Self { departure, turn, plan, since, is_leaving: false };
        while Arc::strong_count(&frozen.plan) > 1 {
            frozen.pause("calls to the exports are still under way")?;
        }
        Ok(frozen)
    }

    /// Returns the state of the clients.
    fn state(&self, volume: u64) -> Result<ExportedVolume> {
        let comity_nfs4::Memory { engine, clock, .. } = &self.departure.parts.memory;
        loop {
            match engine.hand_over_volume(clock.now(), volume) {
                Ok(exported) => {
                    self.departure.check_state(&exported)?;
                    return Ok(exported);
                }
                Err(why) => self.pause(&why.to_string())?,
            }
        }
    }

    /// Waits a moment, unless callers have waited for too long.
    fn pause(&self, why: &str) -> Result<()> {
        if self.since.elapsed() > FREEZE_PATIENCE {
            let seconds = FREEZE_PATIENCE.as_secs();
            bail!(
                "{why}, and clients have waited for {seconds} s: the exports stay here; try again"
            );
        }
        thread::sleep(FREEZE_POLL);
        Ok(())
    }

    /// Stores that the exports leave: from now on the target decides.
    fn leave(mut self) -> Result<Leaving<'m>> {
        let Departure { parts, peer, paths, id, .. } = self.departure;
        let forward_until = self.departure.forward_seconds.map(after_seconds);
        let (peer, migration) = (peer.name.to_string(), hexadecimal(id));
        let to = Handover { peer, migration, forward_until };
        parts.moved.note_leaving(paths, to.clone())?;
        self.is_leaving = true;
        Ok(Leaving { frozen: self, to })
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        if !self.is_leaving {
            self.turn.put_in_force(Arc::clone(&self.plan));
        }
    }
}

/// Exports whose target has been or will be asked to take them. Nobody serves them until the
/// outcome is known.
struct Leaving<'m> {
    frozen: Frozen<'m>,
    to: Handover,
}

impl Leaving<'_> {
    /// Serves the exports here again, after the target has refused them.
    fn stay(mut self) {
        self.note(&ExportPlace::Here);
        self.frozen.is_leaving = false;
    }

    /// Refers callers to the target. Returns for how long nobody served the exports.
    fn refer(self, away: Plan, volume: u64) -> Duration {
        let Frozen { departure: Departure { parts, paths, .. }, turn, .. } = &self.frozen;
        self.note(&self.to.completed());
        let ids = away.ids_of(paths);
        turn.put_in_force(away);
        parts.forget(volume, &ids);
        self.frozen.since.elapsed()
    }

    fn note(&self, place: &ExportPlace) {
        let Departure { parts, paths, .. } = self.frozen.departure;
        if let Err(why) = parts.moved.note(paths, place) {
            tracing::error!("{why:#}; the target is asked each second until the place is stored");
            parts.moved.note_unanswered(paths);
        }
    }
}

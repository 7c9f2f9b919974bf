//! The source's side: this server hands exports over to another one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use comity_export::{ExportMark, PeerServer, Plan, Whereabouts};
use comity_migrate::{MigrationClient, MigrationError};
use comity_proto::migration::{EXPORTS_MAX, MigrationArgs, MigrationId};
use comity_state::{ExportedVolume, MovingFiles};

use super::freeze::{Frozen, offer_of, rehearse};
use super::migrations::MigrationStep;
use super::moved_exports::{ExportPlace, Handover, after_seconds};
use super::warnings::warnings;
use super::{MigrationParts, check_followers, hexadecimal};
use crate::configuration::PlanTurn;
use crate::limits::FORWARD_PATIENCE;
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
pub(crate) struct Moved {
    /// The number of clients whose state was moved.
    pub(crate) clients: usize,
    /// The number of their opens, locks and delegations.
    pub(crate) states: usize,
    /// The length of the state in bytes.
    pub(crate) state_bytes: usize,
    /// The time for which nobody served the exports.
    pub(crate) frozen: Duration,
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
        let (moving, check) =
            (MovingFiles::from(volume), |it: &ExportedVolume| self.check_state(it));
        rehearse(&self.parts, (&moving, &check), progress)?;
        let turn = self.parts.reload.turn();
        progress.begin("freezing")?;
        let frozen = Frozen::begin(&self.parts, &turn, &self.paths)?;
        let (marks, volume) = self.check(frozen.plan())?;
        let exported = frozen.state((&MovingFiles::from(volume), &check))?;
        let states = exported.clients.iter().map(|client| client.states.len()).sum();
        let (clients, state) = (exported.clients.len(), exported.to_bytes()?);
        progress.begin("sending the state of clients")?;
        target.send(self.id, &state, frozen.until())?;
        let away = self.away(frozen.plan())?;
        progress.begin(MigrationStep::HANDING_OVER)?;
        let leaving = self.leave(frozen, &turn)?;
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

    fn connect(&self) -> Result<MigrationClient> {
        Ok(MigrationClient::connect(&self.peer, self.parts.identity()?)?)
    }

    fn offer(&self, target: &mut MigrationClient, marks: &[ExportMark]) -> Result<()> {
        let answer = target.offer(&self.args(marks));
        answer.with_context(|| format!("{} refuses", self.peer.name))
    }

    fn args<'a>(&'a self, marks: &'a [ExportMark]) -> MigrationArgs<'a> {
        offer_of(self.id, &self.paths, marks)
    }

    /// Stores that the exports leave: from now on the target decides.
    fn leave<'m>(&'m self, mut frozen: Frozen<'m>, turn: &'m PlanTurn<'m>) -> Result<Leaving<'m>> {
        let forward_until = self.forward_seconds.map(after_seconds);
        let (peer, migration) = (self.peer.name.to_string(), hexadecimal(&self.id));
        let to = Handover { peer, migration, forward_until };
        self.parts.moved.note_leaving(&self.paths, to.clone())?;
        frozen.set_leaving(true);
        Ok(Leaving { departure: self, turn, frozen, to })
    }
}

/// Exports whose target has been or will be asked to take them. Nobody serves them until the
/// outcome is known.
struct Leaving<'m> {
    departure: &'m Departure,
    turn: &'m PlanTurn<'m>,
    frozen: Frozen<'m>,
    to: Handover,
}

impl Leaving<'_> {
    /// Serves the exports here again, after the target has refused them.
    fn stay(mut self) {
        self.note(&ExportPlace::Here);
        self.frozen.set_leaving(false);
    }

    /// Refers callers to the target. Returns for how long nobody served the exports.
    fn refer(self, away: Plan, volume: u64) -> Duration {
        let Departure { parts, paths, .. } = self.departure;
        self.note(&self.to.completed());
        let ids = away.ids_of(paths);
        self.turn.put_in_force(away);
        parts.forget(volume, &ids);
        self.frozen.elapsed()
    }

    fn note(&self, place: &ExportPlace) {
        let Departure { parts, paths, .. } = self.departure;
        if let Err(why) = parts.moved.note(paths, place) {
            tracing::error!("{why:#}; the target is asked each second until the place is stored");
            parts.moved.note_unanswered(paths);
        }
    }
}

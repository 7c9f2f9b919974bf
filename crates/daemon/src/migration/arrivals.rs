//! The target's side: exports that other servers hand over to this one.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use comity_export::{ExportMark, PeerServer, Plan};
use comity_migrate::{CallFailure, MigrationTarget};
use comity_proto::migration::{LoadReply, MigrationArgs, MigrationId, OfferedExport, SendArgs};
use comity_server::blocking;
use comity_state::ExportedVolume;

use super::moved_exports::Handover;
use super::transfer::Transfers;
use super::{MigrationParts, check_followers, hexadecimal};
use crate::configuration::PlanTurn;
use crate::load::{server_load, told};

/// The reason against an export that another server does not serve from the same files.
const NOT_THE_SAME: &str =
    "is not the same export there: both servers need the same files, and the same handle.key";

/// Takes exports over.
pub(crate) struct Arrivals {
    parts: MigrationParts,
    transfers: Transfers<()>,
}

impl Arrivals {
    pub(crate) const fn new(parts: MigrationParts) -> Self {
        Self { parts, transfers: Transfers::new() }
    }

    /// Makes the plan in which the offered exports are here. They must be at the peer now.
    fn plan(
        &self,
        turn: &PlanTurn<'_>,
        from: &PeerServer,
        paths: &[PathBuf],
    ) -> Result<Plan, CallFailure> {
        let current = self.parts.exports.current();
        for path in paths {
            let export = current.export_at(path);
            let servers = export.and_then(|export| export.referral()).into_iter();
            let mut servers = servers.flat_map(|it| it.locations()).flat_map(|it| it.servers());
            if !servers.any(|server| *server == *from.host) {
                let (shown, name) = (path.display(), &from.name);
                let text =
                    format!("it does not know that {shown} is at {name}: give it home={name}");
                return Err(CallFailure::invalid(text));
            }
        }
        let loaded = turn.load(self.parts.moved.finder_with(paths));
        Ok(current.adopting(&loaded.map_err(CallFailure::invalid)?, paths))
    }

    /// Checks that this server would serve the offered exports from the same files, and serves no
    /// other export of their volume. Returns the volume.
    fn check(
        &self,
        plan: &Plan,
        offer: &MigrationArgs<'_>,
        is_frozen: bool,
    ) -> Result<u64, CallFailure> {
        let volume = check_marks(plan, offer, (is_frozen, NOT_THE_SAME))?;
        match self.parts.exports.current().exports_of(volume).next() {
            Some(other) => Err(CallFailure::invalid(format!(
                "it already serves {} from the same volume, and two servers would then grant \
                 locks of the same files: move that export here first",
                other.display()
            ))),
            None => Ok(volume),
        }
    }

    fn begin(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), CallFailure> {
        if let Some(why) = self.parts.refusal {
            return Err(CallFailure::invalid(why));
        }
        let memory = &self.parts.memory;
        if memory.engine.is_in_grace() {
            let left = memory.engine.grace_left(memory.clock.now()).as_secs();
            let text =
                format!("it is in its grace period, for about {left} s more; then try again");
            return Err(CallFailure::at_present(text));
        }
        self.transfers.begin((from, offer.id), || {
            let turn = self.parts.turn()?;
            self.check(&self.plan(&turn, from, &paths_of(offer))?, offer, false).map(drop)
        })
    }

    /// Takes the exports over, with the state that was sent.
    fn complete(
        &self,
        sent: &[u8],
        (from, offer): (&PeerServer, &MigrationArgs<'_>),
    ) -> Result<(), CallFailure> {
        let MigrationParts { moved, memory, .. } = &self.parts;
        let state = ExportedVolume::from_bytes(sent).map_err(CallFailure::invalid)?;
        check_followers(&state, self.parts.serves_three).map_err(CallFailure::invalid)?;
        let (paths, turn) = (paths_of(offer), self.parts.turn()?);
        let plan = self.plan(&turn, from, &paths)?;
        let volume = self.check(&plan, offer, true)?;
        check_files(&plan, &state, (volume, &paths))?;
        let clients = memory.engine.import_volume(memory.clock.now(), &state);
        let clients = clients.map_err(CallFailure::at_present)?;
        let is_stored = memory.engine.is_settled(memory.settle.as_deref());
        let noted = match is_stored {
            true => moved.note_taken(&paths, &handover(from, &offer.id)),
            false => Err(anyhow::anyhow!("the records of clients cannot be stored")),
        };
        if let Err(why) = noted {
            // No other state of the volume is here.
            self.parts.forget(volume, &[]);
            return Err(CallFailure::fault(format!("{why:#}")));
        }
        turn.put_in_force(plan);
        tracing::info!(?paths, clients = clients.len(), from = %from.name, "exports taken over");
        if let Some(callbacks) = &memory.callbacks {
            callbacks.pump(memory.clock.now());
        }
        Ok(())
    }
}

impl MigrationTarget for Arrivals {
    fn offer(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), CallFailure> {
        blocking(|| self.begin(from, offer))
    }

    fn receive(&self, from: &PeerServer, part: &SendArgs<'_>) -> Result<(), CallFailure> {
        self.transfers.receive(from, part)
    }

    fn take(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), CallFailure> {
        self.transfers.take((from, &offer.id), |state, ()| self.complete(state, (from, offer)))
    }

    fn load(&self) -> LoadReply {
        told(&server_load(&self.parts.load))
    }

    fn outcome(&self, from: &PeerServer, id: &MigrationId) -> bool {
        self.transfers.end((from, id), || self.parts.moved.has_taken(&handover(from, id)))
    }
}

/// Checks that this server would serve the offered exports from the same files of one volume;
/// returns the volume. Unless the exports are frozen, their top directories may change meanwhile.
/// `difference` says what is wrong with an export that differs.
pub(crate) fn check_marks(
    plan: &Plan,
    offer: &MigrationArgs<'_>,
    (is_frozen, difference): (bool, &str),
) -> Result<u64, CallFailure> {
    let mut volume = None;
    for offered in &offer.exports.0 {
        let path = path_of(offered);
        let mut mark = plan.export_mark(path).map_err(CallFailure::invalid)?;
        if !is_frozen {
            mark.change = offered.change;
        }
        if mark != mark_of(offered) {
            return Err(CallFailure::invalid(format!("{} {difference}", path.display())));
        }
        if *volume.get_or_insert(mark.volume) != mark.volume {
            return Err(CallFailure::invalid("the exports are of several volumes"));
        }
    }
    volume.ok_or_else(|| CallFailure::invalid("no export is offered"))
}

/// Checks that the state is of the offered exports only.
pub(crate) fn check_files(
    plan: &Plan,
    state: &ExportedVolume,
    (volume, paths): (u64, &[PathBuf]),
) -> Result<(), CallFailure> {
    let ids = plan.ids_of(paths);
    let of_clients = state.clients.iter().flat_map(|client| &client.states).map(|it| it.file);
    let mut files = of_clients.chain(state.files.iter().map(|file| file.key));
    if state.volume == volume && files.all(|it| it.volume == volume && ids.contains(&it.export)) {
        return Ok(());
    }
    Err(CallFailure::invalid("the state is of other exports"))
}

fn handover(from: &PeerServer, id: &MigrationId) -> Handover {
    let (peer, migration) = (from.name.to_string(), hexadecimal(id));
    Handover { peer, migration, forward_until: None }
}

pub(crate) fn path_of<'a>(offered: &OfferedExport<'a>) -> &'a Path {
    Path::new(OsStr::from_bytes(offered.path.0))
}

pub(crate) fn paths_of(offer: &MigrationArgs<'_>) -> Vec<PathBuf> {
    offer.exports.0.iter().map(|offered| path_of(offered).to_owned()).collect()
}

pub(crate) fn mark_of(offered: &OfferedExport<'_>) -> ExportMark {
    let OfferedExport { top, volume, fileid, change, .. } = offered;
    ExportMark { top: top.0.into(), volume: *volume, fileid: *fileid, change: *change }
}

//! The state of a volume as a plain value. All state of a file is decided in one place, so that a
//! volume moves as a whole, whichever exports show it, or exports move that share no files.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::clients::ExportedPart;
use super::error::ExportRefusal;
use super::moving_files::MovingFiles;
use crate::client_state::ClientState;
use crate::file::File;
use crate::{Client, DelegationKind, Engine, ExportedClient, ExportedFile, FileKey, Result};

/// All state that clients have of the files of a volume, or of some of its exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedVolume {
    /// The number of the volume ([`FileKey::volume`]).
    pub volume: u64,
    /// The clients that have state of it, in the order in which they came.
    pub clients: Vec<ExportedClient>,
    /// The files with owners that wait, or with delays, by their handles.
    pub files: Vec<ExportedFile>,
}

impl Engine {
    /// Returns all state of files as a plain value. A client that has other state, too, is
    /// exported without its sessions: they stay in this engine, and the client makes new ones
    /// under its clientid at the other engine. The state also stays in this engine.
    ///
    /// No request for the files may be served from the beginning of the call until one of the two
    /// engines serves them.
    ///
    /// # Errors
    /// [`ExportRefusal`]: something cannot be exported now. Nothing is left out silently.
    pub fn export_volume(
        &self,
        now: Duration,
        moving: impl Into<MovingFiles>,
    ) -> Result<ExportedVolume, ExportRefusal> {
        let moving = moving.into();
        if self.is_in_grace() || self.has_grace_at(&moving) {
            return Err(ExportRefusal::Grace);
        }
        let files = self.files_of(&moving);
        files.iter().try_for_each(|file| can_move(file))?;
        self.are_of_one_export(&moving)?;
        files.iter().for_each(|file| self.drop_gone_waiters(now, file));
        let waiting = files.iter().flat_map(|file| file.state().locks.queue());
        let waiting = waiting.map(|queued| queued.wish.owner).collect();
        let clients = self.clients.all().into_iter();
        let clients = clients.filter_map(|client| {
            self.export_client_of(now, &client, (&moving, &waiting)).transpose()
        });
        let clients = clients.collect::<Result<_, _>>()?;
        let files = files.iter().filter_map(|file| self.export_file(now, file)).collect();
        Ok(ExportedVolume { volume: moving.volume, clients, files })
    }

    fn has_grace_at(&self, moving: &MovingFiles) -> bool {
        let exports = moving.exports.iter().flatten();
        exports.copied().any(|export| self.export_graces.of(export).is_some())
    }

    /// Checks that no file is used through several exports, if not the whole volume moves.
    fn are_of_one_export(&self, moving: &MovingFiles) -> Result<(), ExportRefusal> {
        if moving.exports.is_none() {
            return Ok(());
        }
        let files = self.files_of(&MovingFiles::from(moving.volume));
        let shared = files.iter().find(|file| file.state().by_many_exports);
        shared.map_or(Ok(()), |file| Err(ExportRefusal::SeveralExports(file.key)))
    }

    /// Exports files for an engine that takes them over. That engine continues the numbering of
    /// each client's states. This one, which may serve other files to the same client, continues
    /// from a pseudo-random number. So the two engines hardly ever give the same stateid.
    ///
    /// # Errors
    /// As [`Engine::export_volume`].
    pub fn hand_over_volume(
        &self,
        now: Duration,
        moving: impl Into<MovingFiles>,
    ) -> Result<ExportedVolume, ExportRefusal> {
        let mut exported = self.export_volume(now, moving)?;
        for it in &mut exported.clients {
            let Some(client) = self.clients.get(it.id) else { continue };
            let mut state = client.state();
            it.last_number = state.holdings.last_number();
            state.holdings.continue_after(self.clients.random_start_number());
        }
        Ok(exported)
    }

    /// Returns the state of a client, or none if it has no state of the files.
    fn export_client_of(
        &self,
        now: Duration,
        client: &Arc<Client>,
        (moving, waiting): (&MovingFiles, &HashSet<u64>),
    ) -> Result<Option<ExportedClient>, ExportRefusal> {
        let of = |file: &FileKey| moving.has(file);
        let state = client.state();
        if !state.holdings.states().any(|(_, it)| of(&it.file.key)) {
            return Ok(None);
        }
        let whole = has_nothing_else(&state, &of);
        let mut copies = state.holdings.offloads.0.values();
        if copies.any(|copy| whole || of(&copy.wanted.file)) {
            return Err(ExportRefusal::Copy(client.id));
        }
        drop(state);
        let part = ExportedPart { of: &of, waiting, whole, address: moving.address };
        let exported = self.export_part(now, client, &part);
        exported.map(Some).map_err(|_| ExportRefusal::RequestUnderWay(client.id))
    }
}

/// Returns whether a client has no state of other files.
pub(super) fn has_nothing_else(state: &ClientState, of: &dyn Fn(&FileKey) -> bool) -> bool {
    let copies = state.holdings.offloads.0.values();
    state.holdings.states().all(|(_, it)| of(&it.file.key))
        && copies.map(|copy| &copy.wanted.file).all(of)
}

/// Checks that a file has only state that can move.
fn can_move(file: &File) -> Result<(), ExportRefusal> {
    let on_file = file.state();
    if on_file.delegations.iter().any(|(_, it)| it.kind == DelegationKind::Directory) {
        return Err(ExportRefusal::DirectoryDelegation(file.key));
    }
    if !on_file.layouts.are_over() {
        return Err(ExportRefusal::Layout(file.key));
    }
    Ok(())
}

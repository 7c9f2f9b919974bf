//! The state of a volume as a plain value. All state of a file is decided in one place, so that a
//! volume moves as a whole, whichever exports show it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::clients::ExportedPart;
use super::error::ExportRefusal;
use crate::client_state::ClientState;
use crate::file::File;
use crate::{Client, DelegationKind, Engine, ExportedClient, ExportedFile, FileKey, Result};

/// All state that clients have of the files of a volume.
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
    /// Returns all state of a volume as a plain value. A client that has other state, too, is
    /// exported without its sessions: it keeps them here, and makes new ones under its clientid
    /// where it finds the volume. The state also stays in this engine.
    ///
    /// No request for the volume may be served from the begin of the call until either engine
    /// serves the volume.
    ///
    /// # Errors
    /// [`ExportRefusal`]: something cannot be exported now. Nothing is left out silently.
    pub fn export_volume(
        &self,
        now: Duration,
        volume: u64,
    ) -> Result<ExportedVolume, ExportRefusal> {
        if self.is_in_grace() {
            return Err(ExportRefusal::Grace);
        }
        let files = self.files_of(volume);
        files.iter().try_for_each(|file| can_move(file))?;
        files.iter().for_each(|file| self.drop_gone_waiters(now, file));
        let waiting = files.iter().flat_map(|file| file.state().locks.queue());
        let waiting = waiting.map(|queued| queued.wish.owner).collect();
        let clients = self.clients.all().into_iter();
        let clients = clients.filter_map(|client| {
            self.export_client_of(now, &client, (volume, &waiting)).transpose()
        });
        let clients = clients.collect::<Result<_, _>>()?;
        let files = files.iter().filter_map(|file| self.export_file(now, file)).collect();
        Ok(ExportedVolume { volume, clients, files })
    }

    /// Exports a volume for an engine that takes it over. That engine continues the numbering of
    /// each client's states. This one, which may serve other volumes to the same client, continues
    /// from a pseudo-random number. So the two engines hardly ever give the same stateid.
    ///
    /// # Errors
    /// As [`Engine::export_volume`].
    pub fn hand_over_volume(
        &self,
        now: Duration,
        volume: u64,
    ) -> Result<ExportedVolume, ExportRefusal> {
        let mut exported = self.export_volume(now, volume)?;
        for it in &mut exported.clients {
            let Some(client) = self.clients.get(it.id) else { continue };
            let mut state = client.state();
            it.last_number = state.holdings.last_number();
            state.holdings.continue_after(self.clients.random_start_number());
        }
        Ok(exported)
    }

    /// Returns the state of a client, or none if it has no state of the volume.
    fn export_client_of(
        &self,
        now: Duration,
        client: &Arc<Client>,
        (volume, waiting): (u64, &HashSet<u64>),
    ) -> Result<Option<ExportedClient>, ExportRefusal> {
        let of = |file: &FileKey| file.volume == volume;
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
        let exported = self.export_part(now, client, &ExportedPart { of: &of, waiting, whole });
        exported.map(Some).map_err(|_| ExportRefusal::RequestUnderWay(client.id))
    }
}

/// Returns whether a client has no state of other volumes.
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

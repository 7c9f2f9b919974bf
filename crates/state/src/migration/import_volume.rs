//! The state of a volume is taken in, as a whole or not at all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::check::check;
use super::clients::Arrival;
use super::error::ImportRefusal;
use super::export_volume::ExportedVolume;
use super::files::import_file;
use super::moving_files::MovingFiles;
use super::returning::is_again;
use crate::client::Names;
use crate::file::File;
use crate::release::Wakes;
use crate::sync::atomic::Ordering;
use crate::{
    Client, ClientId, Engine, ExportedClient, ExportedFile, ExportedKind, FileKey, Result,
};

impl Engine {
    /// Takes in the state of a volume that another engine has exported. Clients go on without a
    /// reclaim: their clientids, sessionids and stateids stay valid. Recalls that are under way are
    /// sent again, and waiting owners are notified again of locks that are offered to them.
    ///
    /// A client may be known here already: the volume comes back, or the client uses other volumes
    /// of this engine. It keeps its clientid, state and sessions here. If both engines know it by
    /// the same clientid, its sessions of the other engine are added, up to the bound. Clients are
    /// no longer told that their leases of the volume have moved.
    ///
    /// The shell must serve the volume only afterwards, and, if programs use the volume on this
    /// server, first take the locks and leases of the clients in the file system.
    ///
    /// # Errors
    /// [`ImportRefusal`]; nothing has changed then, except that a client that would have returned
    /// may have been forgotten, if its lease had expired.
    pub fn import_volume(
        &self,
        now: Duration,
        volume: &ExportedVolume,
    ) -> Result<Vec<Arc<Client>>, ImportRefusal> {
        self.import_files_of(now, volume, volume.volume)
    }

    /// Does the same as [`Engine::import_volume`] for the state of some exports of a volume.
    ///
    /// # Errors
    /// As [`Engine::import_volume`].
    pub fn import_files_of(
        &self,
        now: Duration,
        volume: &ExportedVolume,
        moving: impl Into<MovingFiles>,
    ) -> Result<Vec<Arc<Client>>, ImportRefusal> {
        check(volume, &self.settings)?;
        let mut names = self.clients.names();
        self.has_place_for(&names, volume)?;
        self.has_room_for(volume)?;
        let arrivals = self.adopt_clients(now, &mut names, volume)?;
        let offers = match self.import_files(now, volume, &arrivals) {
            Ok(offers) => offers,
            Err(refusal) => {
                arrivals.into_iter().for_each(|it| self.undo_import(now, &mut names, it));
                return Err(refusal);
            }
        };
        for pair in arrivals.iter().zip(&volume.clients) {
            self.settle_client(now, &mut names, pair);
        }
        drop(names);
        let (moving, clients) = (moving.into(), arrivals.iter().map(|it| Arc::clone(it.client())));
        let clients: Vec<_> = clients.collect();
        for pair in clients.iter().zip(&volume.clients) {
            moving.address.iter().for_each(|address| self.keep_sessions(now, pair, *address));
        }
        self.end_move(moving);
        self.resume(volume, (&clients, offers));
        Ok(clients)
    }

    /// Checks that there is place for all clients and delegations. No client is evicted for them.
    fn has_place_for(&self, names: &Names, volume: &ExportedVolume) -> Result<(), ImportRefusal> {
        if self.is_in_grace() {
            return Err(ImportRefusal::Grace);
        }
        let states = volume.clients.iter().flat_map(|client| &client.states);
        let delegated = states.filter(|it| matches!(it.kind, ExportedKind::Delegation { .. }));
        let delegations = self.files.delegations.load(Ordering::Acquire) + delegated.count();
        let is_new = |it: &&ExportedClient| {
            names.confirmed(&it.recorded()).is_none_or(|known| !is_again(known, it))
        };
        let new = volume.clients.iter().filter(is_new);
        let clients = self.clients.len() + new.count();
        let limits = &self.settings.limits;
        let has_place = clients <= limits.clients && delegations <= limits.delegations;
        if has_place { Ok(()) } else { Err(ImportRefusal::Full) }
    }

    fn adopt_clients(
        &self,
        now: Duration,
        names: &mut Names,
        volume: &ExportedVolume,
    ) -> Result<Vec<Arrival>, ImportRefusal> {
        let mut arrivals = Vec::new();
        for exported in &volume.clients {
            match self.adopt_client(now, names, exported) {
                Ok(arrival) => arrivals.push(arrival),
                Err(error) => {
                    arrivals.into_iter().for_each(|it| self.undo_import(now, names, it));
                    return Err(ImportRefusal::Client(exported.id, error));
                }
            }
        }
        Ok(arrivals)
    }

    /// Adds the queues of all files; returns the locks that are offered to waiting owners.
    fn import_files(
        &self,
        now: Duration,
        volume: &ExportedVolume,
        arrivals: &[Arrival],
    ) -> Result<Wakes, ImportRefusal> {
        let files = self.make_files(now, volume)?;
        let ids = volume.clients.iter().map(|client| client.id);
        let arrivals: HashMap<_, _> = ids.zip(arrivals).collect();
        // Nothing that can fail comes after the first change of a file.
        let pairs = files.iter().zip(&volume.files);
        let offers = pairs.flat_map(|(file, exported)| {
            let (key, exported) = (exported.key, as_here(exported, &arrivals));
            let offers = import_file((now, &self.settings), file, &exported).into_iter();
            offers.map(move |offer| (key, offer))
        });
        let offers = offers.collect();
        files.iter().for_each(|file| self.files.let_go(now, file));
        Ok(offers)
    }

    /// Returns the files with queues or delays. If one cannot be made, none stays.
    fn make_files(
        &self,
        now: Duration,
        volume: &ExportedVolume,
    ) -> Result<Vec<Arc<File>>, ImportRefusal> {
        let mut files = Vec::new();
        for it in &volume.files {
            let Ok(file) = self.file(&it.key) else {
                files.iter().for_each(|file| self.files.let_go(now, file));
                return Err(ImportRefusal::File(it.key));
            };
            files.push(file);
        }
        Ok(files)
    }

    /// Sends again what clients may not have received, and watches the deadlines of all files.
    fn resume(&self, volume: &ExportedVolume, (clients, offers): (&[Arc<Client>], Wakes)) {
        let states = volume.clients.iter().flat_map(|client| &client.states);
        let files: HashSet<FileKey> = states.map(|state| state.file).collect();
        let waits = volume.files.iter().map(|file| file.key);
        for key in files.into_iter().chain(waits) {
            let file = self.files.get(&key).filter(|file| file.state().has_deadline());
            file.iter().for_each(|file| self.files.watch(file));
        }
        let recalls = clients.iter().flat_map(|client| self.recalls(client));
        recalls.for_each(|effect| self.effect_queue.push(effect));
        self.announce(offers);
    }
}

/// Returns the queue and the delays of a file with the clients and the owners as they are here.
fn as_here(file: &ExportedFile, arrivals: &HashMap<ClientId, &Arrival>) -> ExportedFile {
    let waits = file.waits.iter().map(|it| match arrivals.get(&it.client) {
        Some(arrival) => arrival.wait(it),
        None => it.clone(),
    });
    let here = |id: ClientId| arrivals.get(&id).map_or(id, |arrival| arrival.client().id);
    let resting = file.resting.iter().map(|(client, left)| (here(*client), *left));
    ExportedFile { waits: waits.collect(), resting: resting.collect(), ..file.clone() }
}

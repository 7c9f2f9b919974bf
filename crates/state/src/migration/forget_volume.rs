//! The state of a volume is dropped silently after another engine has taken it over.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::clients::ExportedPart;
use super::export_volume::has_nothing_else;
use super::moving_files::MovingFiles;
use super::owners::owners_of;
use crate::client_state::{ClientState, State, StateKind, lock_owner};
use crate::file::{File, Holder};
use crate::{Client, ClientProtocol, Engine, FileKey, Record};

impl Engine {
    /// Drops all state of files, after another engine has taken them over
    /// ([`Engine::hand_over_volume`]): opens, locks, delegations, revoked states, copies, owners
    /// that wait, grants that are not acknowledged, delays, and messages to clients that were not
    /// sent yet. No client is notified and no lock is offered to the next owner, because all of
    /// them wait at the other engine. Clients keep their sessions, by which they ask where the
    /// volume is, and their other state.
    ///
    /// Each client of NFSv4 that loses state is told that its lease has moved, until it has asked
    /// where the exports are of which it had state (RFC 8881, 18.46.3; RFC 7530, 13.1.5.4):
    /// [`Client::knows_place`]. `exports` are the exports of the files, which refer to the other
    /// server now.
    ///
    /// Clients keep their records in stable storage: a record says that a client may reclaim, not
    /// what. A client without state may open other files here at any time, and then reclaim them
    /// after a restart. The files that have moved it cannot reclaim, since they are not served.
    pub fn forget_volume(&self, now: Duration, moving: impl Into<MovingFiles>, exports: &[u32]) {
        let moving = &moving.into();
        let files = self.files_of(moving);
        let mut elsewhere = self.files.watched();
        elsewhere.retain(|file| !moving.has(&file.key));
        let (waiting, staying) = (waiting_in(&files), waiting_in(&elsewhere));
        drop(elsewhere);
        // The queues end first, so that no lock that ends later is offered to an owner.
        files.iter().for_each(|file| drop_queue(now, file));
        for client in self.clients.all() {
            self.forget_states(now, &client, (moving, exports), (&waiting, &staying));
        }
        for file in &files {
            drop_delays(file);
            self.files.unwatch(file);
            self.files.let_go(now, file);
        }
        self.effect_queue.drop_about(|file| moving.has(file));
    }

    fn forget_states(
        &self,
        now: Duration,
        client: &Arc<Client>,
        (moving, exports): (&MovingFiles, &[u32]),
        (waiting, staying): (&HashSet<u64>, &HashSet<u64>),
    ) {
        let of = |file: &FileKey| moving.has(file);
        let mut state = client.state();
        state.granted.retain(|grant| !of(&grant.file));
        // A copy goes on after its file was closed.
        state.holdings.offloads.0.retain(|_, copy| !of(&copy.wanted.file));
        let numbers: Vec<u32> = numbers_of(&state, &of);
        if numbers.is_empty() {
            return;
        }
        let whole = has_nothing_else(&state, &of);
        let part = ExportedPart { of: &of, waiting, whole, address: moving.address };
        let mut owners = owners_of(client, &state, &part);
        owners.retain(|owner| !staying.contains(&lock_owner(client.id, *owner)));
        if client.protocol() != ClientProtocol::Nlm {
            note_moves(&mut state, (moving.volume, exports), &numbers);
            client.note_moved(&state);
        }
        let take = |number| Some((number, state.holdings.remove(number)?));
        let dropped: Vec<(u32, State)> = numbers.into_iter().filter_map(take).collect();
        owners.into_iter().for_each(|owner| state.holdings.forget_stateless(owner));
        client.note_revoked(&state);
        client.note_grantees(&state);
        drop(state);
        // The other server tells of these revocations.
        for (_, revoked) in dropped.iter().filter(|(_, it)| it.what.revoked().is_some()) {
            self.record(Record::Unrevoked(client.recorded(), revoked.file.key));
        }
        self.release_silently(now, client, dropped);
    }

    /// Removes states from their files. Nobody waits in these.
    fn release_silently(&self, now: Duration, client: &Client, dropped: Vec<(u32, State)>) {
        for (number, state) in dropped {
            if matches!(state.what, StateKind::Layout(_)) {
                self.fence(&state.file);
            }
            let holder = Holder { client: client.id, state: number };
            self.release_state(now, holder, &state, &mut Vec::new());
        }
    }
}

/// Returns the lock-owners that wait in files.
fn waiting_in(files: &[Arc<File>]) -> HashSet<u64> {
    let queues = files.iter().flat_map(|file| file.state().locks.queue());
    queues.map(|queued| queued.wish.owner).collect()
}

fn numbers_of(state: &ClientState, of: &dyn Fn(&FileKey) -> bool) -> Vec<u32> {
    let states = state.holdings.states().filter(|(_, it)| of(&it.file.key));
    states.map(|(number, _)| number).collect()
}

/// Notes for which exports the client has to ask. A file that several exports show needs only one
/// of them, because its state does not say which one the client uses.
fn note_moves(state: &mut ClientState, (volume, exports): (u64, &[u32]), numbers: &[u32]) {
    for file in numbers.iter().filter_map(|it| state.holdings.get(*it)).map(|it| &it.file) {
        let export = file.key.export;
        if exports.contains(&export) && !file.state().by_many_exports {
            state.moved.note(volume, &[export]);
        } else {
            state.moved.note(volume, exports);
        }
    }
}

fn drop_queue(now: Duration, file: &File) {
    let mut offers = Vec::new();
    file.state().locks.withdraw(now, |_| true, &mut offers);
    debug_assert!(offers.is_empty(), "an owner is left in the queue");
}

fn drop_delays(file: &File) {
    let mut on_file = file.state();
    on_file.delegations.refresh(Duration::MAX);
    on_file.layouts.refresh(Duration::MAX);
    on_file.by_many_exports = false;
}

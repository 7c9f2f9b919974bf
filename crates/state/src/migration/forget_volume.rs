//! The state of a volume is dropped silently after another engine has taken it over.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::clients::ExportedPart;
use super::export_volume::has_nothing_else;
use super::owners::owners_of;
use crate::client_state::{ClientState, State, StateKind, lock_owner};
use crate::file::{File, Holder};
use crate::{Client, ClientProtocol, Engine, FileKey};

impl Engine {
    /// Drops all state of a volume, after another engine has taken it over
    /// ([`Engine::hand_over_volume`]): opens, locks, delegations, revoked states, copies, owners
    /// that wait, grants that are not acknowledged, delays, and messages to clients that were not
    /// sent yet. No client is notified and no lock is offered to the next owner, because all of
    /// them wait at the other engine. Clients keep their sessions, by which they ask where the
    /// volume is, and their other state.
    ///
    /// Each client of NFSv4 that loses state is told that its lease has moved, until it has asked
    /// where the exports are of which it had state (RFC 8881, 18.46.3; RFC 7530, 13.1.5.4):
    /// [`Client::knows_place`]. `exports` are the exports of the volume, which refer to the other
    /// server now.
    ///
    /// Clients keep their records in stable storage: a record says that a client may reclaim, not
    /// what. A client without state may open other files here at any time, and then reclaim them
    /// after a restart. The files of this volume it cannot reclaim, since they are not served.
    pub fn forget_volume(&self, now: Duration, volume: u64, exports: &[u32]) {
        let files = self.files_of(volume);
        let mut elsewhere = self.files.watched();
        elsewhere.retain(|file| file.key.volume != volume);
        let (waiting, staying) = (waiting_in(&files), waiting_in(&elsewhere));
        drop(elsewhere);
        // The queues end first, so that no lock that ends later is offered to an owner.
        files.iter().for_each(|file| drop_queue(now, file));
        for client in self.clients.all() {
            self.forget_states(now, &client, (volume, exports), (&waiting, &staying));
        }
        for file in &files {
            drop_delays(file);
            self.files.unwatch(file);
            self.files.let_go(now, file);
        }
        self.effect_queue.drop_about(volume);
    }

    fn forget_states(
        &self,
        now: Duration,
        client: &Arc<Client>,
        (volume, exports): (u64, &[u32]),
        (waiting, staying): (&HashSet<u64>, &HashSet<u64>),
    ) {
        let of = |file: &FileKey| file.volume == volume;
        let mut state = client.state();
        state.granted.retain(|grant| !of(&grant.file));
        // A copy goes on after its file was closed.
        state.holdings.offloads.0.retain(|_, copy| !of(&copy.wanted.file));
        let numbers: Vec<u32> = numbers_of(&state, &of);
        if numbers.is_empty() {
            return;
        }
        let part = ExportedPart { of: &of, waiting, whole: has_nothing_else(&state, &of) };
        let mut owners = owners_of(client, &state, &part);
        owners.retain(|owner| !staying.contains(&lock_owner(client.id, *owner)));
        if client.protocol() != ClientProtocol::Nlm {
            note_moves(&mut state, (volume, exports), &numbers);
            client.note_moved(&state);
        }
        let had_revoked = state.holdings.counts().revoked > 0;
        let take = |number| Some((number, state.holdings.remove(number)?));
        let dropped: Vec<(u32, State)> = numbers.into_iter().filter_map(take).collect();
        owners.into_iter().for_each(|owner| state.holdings.forget_stateless(owner));
        client.note_revoked(&state);
        client.note_grantees(&state);
        if had_revoked && state.holdings.counts().revoked == 0 {
            // The other server tells of these revocations. The record forgets them, so that later
            // state of these files may be reclaimed if the volume comes back.
            self.record(client.record());
        }
        drop(state);
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

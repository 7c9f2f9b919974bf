//! The queue and the delays of a file are exported and imported with the volume.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::error::ImportRefusal;
use super::export_volume::ExportedVolume;
use crate::client_state::{client_of_lock_owner, lock_owner};
use crate::file::File;
use crate::limits::LAYOUT_REST;
use crate::{
    Engine, ExportedClient, ExportedFile, ExportedKind, ExportedWait, FileKey, Offer, QueuedLock,
    Result, Settings,
};

impl Engine {
    /// Returns the queue and the delays of a file; none if it has neither.
    pub(super) fn export_file(&self, now: Duration, file: &File) -> Option<ExportedFile> {
        let on_file = file.state();
        let left = |until: Duration| until.saturating_sub(now);
        let resting = on_file.delegations.resting().filter(|(_, until)| *until > now);
        let exported = ExportedFile {
            key: file.key,
            by_many_exports: on_file.by_many_exports,
            layout_rest: left(on_file.layouts.rest()),
            resting: resting.map(|(client, until)| (client, left(until))).collect(),
            waits: on_file.locks.queue().iter().map(|it| self.export_wait(now, it)).collect(),
        };
        let is_needed = exported.by_many_exports
            || !exported.layout_rest.is_zero()
            || !(exported.resting.is_empty() && exported.waits.is_empty());
        // A file that nobody uses any more may still be in the table, until a tick removes it.
        (is_needed && !on_file.is_idle(now)).then_some(exported)
    }

    /// Removes wishes of owners that are gone. Otherwise they would leave the queue when their time
    /// is over.
    pub(super) fn drop_gone_waiters(&self, now: Duration, file: &Arc<File>) {
        let queue = file.state().locks.queue().into_iter().map(|queued| queued.wish.owner);
        let gone: HashSet<u64> = queue.filter(|owner| !self.is_there(*owner)).collect();
        if !gone.is_empty() {
            let mut offers = Vec::new();
            let is_gone = |wish: &Offer| gone.contains(&wish.owner);
            file.state().locks.withdraw(now, is_gone, &mut offers);
            self.wake_waiters(file, offers);
        }
    }

    fn is_there(&self, owner: u64) -> bool {
        let client = self.clients.get(self.clients.id(client_of_lock_owner(owner)));
        client.is_some_and(|client| client.state().holdings.owner(owner as u32).is_some())
    }

    fn export_wait(&self, now: Duration, queued: &QueuedLock) -> ExportedWait {
        let QueuedLock { wish: Offer { owner, range, kind }, offered, since, until } = *queued;
        ExportedWait {
            client: self.clients.id(client_of_lock_owner(owner)),
            owner: owner as u32,
            range,
            kind,
            offered,
            waited: now.saturating_sub(since),
            left: until.saturating_sub(now),
        }
    }

    /// Checks that each file has room for its locks and for all that wait for them.
    pub(super) fn has_room_for(&self, volume: &ExportedVolume) -> Result<(), ImportRefusal> {
        let mut counts = HashMap::new();
        let held = volume.clients.iter().flat_map(held_in_files);
        let waits = volume.files.iter().map(|file| (file.key, file.waits.len()));
        for (key, more) in held.chain(waits) {
            let known = || self.files.get(&key).map_or(0, |file| file.state().locks.len());
            let count = counts.entry(key).or_insert_with(known);
            *count += more;
            if *count > self.settings.limits.locks_per_file {
                return Err(ImportRefusal::File(key));
            }
        }
        Ok(())
    }
}

/// Returns the numbers of ranges that the owners of a client have locked in files. An owner has one
/// set of ranges in a file, whichever opens it has locked them through.
fn held_in_files(client: &ExportedClient) -> impl Iterator<Item = (FileKey, usize)> {
    let mut seen = HashSet::new();
    client.states.iter().filter_map(move |state| match &state.kind {
        ExportedKind::Lock { owner, ranges, .. } => {
            seen.insert((*owner, state.file)).then_some((state.file, ranges.len()))
        }
        _ => None,
    })
}

/// Adds the queue and the delays of a file; returns the locks that are offered to its owners. No
/// time is longer than this engine's own would be.
pub(super) fn import_file(
    (now, settings): (Duration, &Settings),
    file: &File,
    exported: &ExportedFile,
) -> Vec<Offer> {
    let mut on_file = file.state();
    on_file.by_many_exports |= exported.by_many_exports;
    if !exported.layout_rest.is_zero() {
        on_file.layouts.rest_until(now + exported.layout_rest.min(LAYOUT_REST));
    }
    for (client, left) in &exported.resting {
        on_file.delegations.note_recall(*client, now + settings.recall_rest.min(*left));
    }
    let queued = exported.waits.iter().map(|wait| import_wait((now, settings), wait));
    let queued: Vec<_> = queued.collect();
    queued.iter().for_each(|it| on_file.locks.restore(*it));
    queued.iter().filter(|it| it.offered).map(|it| it.wish).collect()
}

fn import_wait((now, settings): (Duration, &Settings), wait: &ExportedWait) -> QueuedLock {
    let ExportedWait { client, owner, range, kind, offered, waited, left } = *wait;
    let wish = Offer { owner: lock_owner(client, owner), range, kind };
    let longest = if offered { settings.lock_offer } else { settings.lock_wait };
    let (since, until) = (now.saturating_sub(waited), now + left.min(longest));
    QueuedLock { wish, offered, since, until }
}

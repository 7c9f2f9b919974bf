//! Notifications of changes in delegated directories (RFC 8881, 10.9.2 and 20.4).

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use crate::directories::DirectoryNotice;
use crate::file::{File, FileState, Holder};
use crate::{Client, ClientId, Effect, Engine, FileKey, Share, Stateid};

/// Clients that were sent a notification, each with its number.
#[derive(Debug, Clone)]
pub struct Notified {
    directory: FileKey,
    holders: Vec<(Holder, u64)>,
}

impl Engine {
    /// Waits until no other change of one or two directories is being made and noted. A change
    /// holds its turns from before it is made until it is noted, and not while it waits for
    /// clients.
    #[must_use]
    pub fn turns(&self, directories: (&FileKey, Option<&FileKey>)) -> Vec<MutexGuard<'_, ()>> {
        self.changes.turns(directories)
    }

    /// Queues a notification of a change for all clients that asked for it, except `mine`. Changes
    /// of one directory must be noted in the order in which they were made. Returns whom to wait
    /// for before the change is acknowledged; none if nobody is notified.
    pub fn note_change(
        &self,
        now: Duration,
        mine: Option<ClientId>,
        directory: &FileKey,
        notice: DirectoryNotice,
    ) -> Option<Notified> {
        let file = self.files.get(directory)?;
        let mine = file.covered(directory, mine);
        let (mut on_file, notice) = (file.state(), Arc::new(notice));
        let (mut holders, mut uninformed) = (Vec::new(), Vec::new());
        for (holder, delegated) in on_file.delegations.iter_mut() {
            let Some(notices) = delegated.notices.as_mut() else { continue };
            if Some(holder.client) == mine {
                // The reply to its own change must not overtake notifications of earlier ones.
                holders.extend(notices.last_unacknowledged().map(|number| (holder, number)));
            } else if notices.wishes().has_kind_of(&notice) {
                holders.push((holder, notices.push(Arc::clone(&notice))));
                uninformed.extend(notices.wishes().misses_attributes(&notice).then_some(holder));
            }
        }
        let overfull = self.note_names(&on_file, &notice.change);
        for holder in overfull.into_iter().chain(uninformed) {
            self.recall_of(now, &file, &mut on_file, holder);
        }
        let told = holders.iter().filter(|(holder, _)| Some(holder.client) != mine);
        self.counters.directory_notices.add(told.count());
        holders
            .iter()
            .for_each(|(holder, _)| self.send_notices(None, &file, &mut on_file, *holder));
        (!holders.is_empty()).then_some(Notified { directory: *directory, holders })
    }

    /// Returns whether all clients have acknowledged a notification, or have no delegation any
    /// more.
    #[must_use]
    pub fn is_acknowledged(&self, notified: &Notified) -> bool {
        let Some(file) = self.files.get(&notified.directory) else { return true };
        let mut on_file = file.state();
        notified.holders.iter().all(|(holder, number)| {
            let delegated = on_file.delegations.get_mut(*holder);
            let notices = delegated.and_then(|delegated| delegated.notices.as_ref());
            notices.is_none_or(|notices| notices.is_acknowledged(*number))
        })
    }

    /// Recalls the delegations of clients that have not acknowledged a notification in time.
    pub fn recall_silent(&self, now: Duration, notified: &Notified) {
        let Some(file) = self.files.get(&notified.directory) else { return };
        let mut on_file = file.state();
        for (holder, number) in &notified.holders {
            let delegated = on_file.delegations.get_mut(*holder);
            let notices = delegated.and_then(|delegated| delegated.notices.as_ref());
            if notices.is_some_and(|notices| !notices.is_acknowledged(*number)) {
                self.recall_of(now, &file, &mut on_file, *holder);
            }
        }
    }

    /// Recalls the delegations of a directory whose holders cannot be notified of a change, except
    /// that of `mine`. Returns whom to wait for.
    pub fn recall_notified(
        &self,
        now: Duration,
        mine: Option<ClientId>,
        directory: &FileKey,
    ) -> Option<Notified> {
        let file = self.files.get(directory)?;
        let mine = file.covered(directory, mine);
        let mut on_file = file.state();
        self.recall(now, &file, &mut on_file, (mine, Share::access(Share::BOTH)));
        let others = on_file.delegations.iter().map(|(holder, _)| (holder, u64::MAX));
        let holders = others.filter(|(holder, _)| Some(holder.client) != mine).collect();
        Some(Notified { directory: *directory, holders })
    }

    /// Notes a client's answer to CB_NOTIFY. A client that could not apply the notifications, or
    /// that did not get them, loses the delegation.
    pub fn notices_answered(
        &self,
        now: Duration,
        client: &Client,
        (directory, stateid): (&FileKey, &Stateid),
        is_applied: bool,
    ) {
        let (Some(file), Ok(name)) = (self.files.get(directory), stateid.name()) else { return };
        let holder = Holder { client: client.id, state: name.number };
        let mut on_file = file.state();
        let delegated = on_file.delegations.get_mut(holder);
        let Some(notices) = delegated.and_then(|delegated| delegated.notices.as_mut()) else {
            return;
        };
        if is_applied {
            if !self.is_worth(now, notices.policy(), (client.id, &file.key)) {
                notices.give_up();
            }
            notices.acknowledge();
            self.send_notices(Some(now), &file, &mut on_file, holder);
        } else {
            self.recall_of(now, &file, &mut on_file, holder);
        }
    }

    /// Sends the notifications that wait for a holder, unless a call to it is under way. With a
    /// time, those of changed children go with them that are due then.
    pub(super) fn send_notices(
        &self,
        now: Option<Duration>,
        file: &File,
        on_file: &mut FileState,
        holder: Holder,
    ) {
        let Some(delegated) = on_file.delegations.get_mut(holder) else { return };
        let Some(notices) = delegated.notices.as_mut() else { return };
        let (Some(client), wishes) = (self.clients.get(holder.client), notices.wishes()) else {
            return;
        };
        let mut count = 0;
        let children = |has_room: &mut dyn FnMut(&[u8]) -> bool| {
            let due = now.filter(|_| wishes.children != 0);
            let taken = due.map(|now| self.children.take(now, holder, has_room));
            let taken = taken.unwrap_or_default();
            count = taken.len();
            taken
        };
        if let Some(batch) = notices.take(children) {
            self.counters.child_notices.add(count);
            self.counters.directory_notice_calls.add(1);
            self.counters.directory_calls_caused.add(1);
            let (stateid, directory) = (delegated.stateid, file.key);
            self.effect_queue.push(Effect::Notify { client, stateid, directory, wishes, batch });
        }
    }

    /// Recalls the delegation of one client.
    pub(crate) fn recall_of(
        &self,
        now: Duration,
        file: &Arc<File>,
        on_file: &mut FileState,
        holder: Holder,
    ) {
        if let Some(delegated) = on_file.delegations.get_mut(holder) {
            self.begin_recall(now, file, (holder, delegated), None);
            self.files.watch(file);
        }
    }
}

//! CB_GETATTR: the holder of a write delegation alone knows the size and the change attribute of a
//! file that it has not written back yet (RFC 8881, 10.4.3).

use std::time::Duration;

use crate::file::{Delegated, FileState, Holder, WriterReply};
use crate::limits::{WRITER_PAUSE, WRITER_PAUSES_MAX};
use crate::{Client, Effect, Engine, FileKey, Share, Stateid};

/// Time for which a holder's answer is used for all callers. Clients ask several times about one
/// object, and each CB_GETATTR costs two round trips.
const FRESH: Duration = Duration::from_secs(1);

/// Time for which an answer is kept for the caller that caused the CB_GETATTR. Linux repeats its
/// request after at most 15 seconds.
const KEPT: Duration = Duration::from_secs(20);

/// The attributes that the holder of a write delegation reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelegatedAttributes {
    /// The attributes in the file system are valid: no other client has a write delegation, or its
    /// holder has changed nothing.
    OnDisk,
    /// The holder has changed the file.
    Changed {
        /// Size in bytes.
        size: u64,
        /// A change attribute that no client has seen before.
        change: u64,
    },
    /// The holder is being asked.
    Pending,
}

impl Engine {
    /// Stores the file's change attribute at the grant of a write delegation. A different value in
    /// the holder's answer shows that the holder changed the file.
    pub fn delegated_at(&self, client: &Client, stateid: &Stateid, change: u64) {
        self.with_delegation(client, stateid, |delegated| delegated.given = Some(change));
    }

    /// Returns the answer of the holder of a write delegation, other than `mine`, for a file whose
    /// change attribute on disk is `change`. The holder is asked by CB_GETATTR. If it does not
    /// answer within a lease, or cannot answer, the delegation is recalled.
    pub fn delegated_attributes(
        &self,
        now: Duration,
        mine: Option<&Client>,
        key: &FileKey,
        change: u64,
    ) -> DelegatedAttributes {
        let Some(file) = self.files.get(key) else { return DelegatedAttributes::OnDisk };
        let mine = file.covered(key, mine.map(|client| client.id));
        let read = Share::access(Share::READ);
        let conflict = file.state().delegations.conflict(mine, read);
        let Some(holder) = conflict.filter(|holder| !self.give_way(now, *holder)) else {
            return DelegatedAttributes::OnDisk;
        };
        let mut on_file = file.state();
        let Some(delegated) = on_file.delegations.get_mut(holder) else {
            return DelegatedAttributes::OnDisk;
        };
        if let Some(answer) = delegated.fresh_answer(now, change) {
            return answer;
        }
        if !self.ask(now, &mut on_file, holder, file.key) {
            self.recall(now, &file, &mut on_file, (mine, read));
        }
        DelegatedAttributes::Pending
    }

    /// Returns the same, and waits a little for the answer. `pause` sends the pending callbacks and
    /// sleeps a moment; it returns false if the caller cannot wait.
    pub fn delegated_attributes_soon(
        &self,
        now: Duration,
        mine: Option<&Client>,
        (key, change): (&FileKey, u64),
        mut pause: impl FnMut(Duration) -> bool,
    ) -> DelegatedAttributes {
        let mut answer = self.delegated_attributes(now, mine, key, change);
        for _ in 0..WRITER_PAUSES_MAX {
            if answer != DelegatedAttributes::Pending || !pause(WRITER_PAUSE) {
                break;
            }
            answer = self.delegated_attributes(now, mine, key, change);
        }
        answer
    }

    /// Returns whether a client other than `mine` may have changed a file in its cache without
    /// having written it back.
    #[must_use]
    pub fn may_be_written(&self, mine: Option<&Client>, key: &FileKey) -> bool {
        let (mine, read) = (mine.map(|client| client.id), Share::access(Share::READ));
        let file = self.has_delegations().then(|| self.files.get(key)).flatten();
        file.is_some_and(|file| {
            let mine = file.covered(key, mine);
            file.state().delegations.conflict(mine, read).is_some()
        })
    }

    /// Queues a CB_GETATTR unless one is under way; returns false if the holder cannot answer.
    fn ask(&self, now: Duration, on_file: &mut FileState, holder: Holder, file: FileKey) -> bool {
        let Some(delegated) = on_file.delegations.get_mut(holder) else { return true };
        let writer = delegated.writer.get_or_insert_default();
        match writer.asked {
            _ if writer.mute => false,
            Some(asked) => now < asked.saturating_add(self.settings.lease),
            None => {
                writer.asked = Some(now);
                if let Some(client) = self.clients.get(holder.client) {
                    self.effect_queue.push(Effect::GetAttr { client, file });
                }
                true
            }
        }
    }

    /// Stores a client's answer to CB_GETATTR: size and change attribute, or none if it cannot
    /// answer.
    pub fn writer_attributes(
        &self,
        now: Duration,
        client: &Client,
        key: &FileKey,
        said: Option<(u64, u64)>,
    ) {
        let Some(file) = self.files.get(key) else { return };
        let mut on_file = file.state();
        let Some(holder) = on_file.delegations.of(client.id) else { return };
        if let Some(delegated) = on_file.delegations.get_mut(holder) {
            let writer = delegated.writer.get_or_insert_default();
            writer.asked = None;
            writer.mute = said.is_none();
            writer.said =
                said.map(|(size, change)| WriterReply { at: now, size, change, told: None });
        }
    }
}

impl Delegated {
    /// Returns the holder's answer if it is fresh. If the file has changed, every answer gets a new
    /// change attribute, since the file may have changed again since the previous answer.
    fn fresh_answer(&mut self, now: Duration, change: u64) -> Option<DelegatedAttributes> {
        let given = self.given;
        let writer = self.writer.as_mut()?;
        let said = writer.said.as_mut()?;
        let limit = if said.told.is_some() { FRESH } else { KEPT };
        if now > said.at.saturating_add(limit) {
            writer.said = None;
            return None;
        }
        if given.is_none_or(|given| given == said.change) {
            said.told.get_or_insert(change);
            return Some(DelegatedAttributes::OnDisk);
        }
        let next = writer.shown.max(change).wrapping_add(1);
        let change = *said.told.get_or_insert(next);
        writer.shown = change;
        Some(DelegatedAttributes::Changed { size: said.size, change })
    }
}

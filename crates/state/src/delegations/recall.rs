//! Recalls of delegations that conflict with operations of others (RFC 8881, 10.4).

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{State, StateKind};
use crate::courtesy::Obstacle;
use crate::directories::CALLS_OF_A_RECALL;
use crate::file::{Delegated, File, FileState, Holder, Recall};
use crate::{
    Client, ClientId, DelegationKind, Effect, Engine, Error, FileKey, Result, Share, Stateid,
};

impl Engine {
    /// Begins to recall delegations of other clients that conflict with a share.
    pub(crate) fn recall(
        &self,
        now: Duration,
        file: &Arc<File>,
        on_file: &mut FileState,
        (mine, share): (Option<ClientId>, Share),
    ) {
        let rest = now.saturating_add(self.settings.recall_rest);
        let mut recalled = Vec::new();
        for (holder, delegated) in on_file.delegations.iter_mut() {
            if Some(holder.client) != mine
                && delegated.stands_against(share)
                && self.begin_recall(now, file, (holder, delegated), mine)
                && delegated.kind != DelegationKind::Directory
            {
                recalled.push(holder.client);
            }
        }
        recalled.into_iter().for_each(|client| on_file.delegations.note_recall(client, rest));
        self.files.watch(file);
    }

    /// Begins to recall one delegation, unless that is under way; returns whether it did.
    pub(super) fn begin_recall(
        &self,
        now: Duration,
        file: &File,
        (holder, delegated): (Holder, &mut Delegated),
        wanted_by: Option<ClientId>,
    ) -> bool {
        // Skip clients whose lease has expired; the retry evicts them. A change that is notified is
        // not tried again, so its holder must lose the delegation in any case.
        let client = self.clients.get(holder.client);
        let is_notified = delegated.notices.is_some();
        let client = client.filter(|client| is_notified || !self.has_expired(now, client));
        let Some(client) = client.filter(|_| delegated.recall.is_none()) else { return false };
        delegated.recall = Some(Recall { queued: now, sent: None, until: None, wanted_by });
        if delegated.kind == DelegationKind::Directory {
            self.note_directory_recall(now, holder.client, &file.key);
        }
        let (stateid, file) = (delegated.stateid, file.key);
        self.effect_queue.push(Effect::Recall { client, stateid, file, truncate: false });
        true
    }

    fn note_directory_recall(&self, now: Duration, client: ClientId, directory: &FileKey) {
        let mut saved = 0;
        self.history.note(client, directory, |seen| {
            saved = seen.saved(now);
            seen.recall(now);
        });
        self.counters.directories_recalled.add(1);
        self.counters.directory_calls_saved.add(saved as usize);
        self.counters.directory_calls_caused.add(CALLS_OF_A_RECALL as usize);
    }

    /// Recalls the delegations of a file that an operation conflicts with, except those of `mine`.
    /// The operations are READ and WRITE without an open, SETATTR, and all that make or remove a
    /// name, in any protocol. A client's own operation never recalls its own delegation.
    ///
    /// # Errors
    /// [`crate::Error::Delay`]: the recall is under way.
    pub fn break_delegations(
        &self,
        now: Duration,
        mine: Option<&Client>,
        key: &FileKey,
        share: Share,
    ) -> Result<()> {
        self.break_delegations_if(now, mine, (key, share), &|| true)
    }

    /// Does the same as [`Engine::break_delegations`] for a caller whose rights are not checked
    /// yet. `may` checks them, and is called only if a delegation would be recalled.
    ///
    /// # Errors
    /// [`Error::Delay`]: the recall is under way. [`Error::Perm`]: `may` returned false, and no
    /// delegation is recalled.
    pub fn break_delegations_if(
        &self,
        now: Duration,
        mine: Option<&Client>,
        (key, share): (&FileKey, Share),
        may: &dyn Fn() -> bool,
    ) -> Result<()> {
        let changer = mine.map(|client| client.id);
        let broken = match self.files.get(key) {
            Some(file) => self.break_on(now, changer, (&file, key, share), may),
            None => Ok(()),
        };
        if broken.is_ok() {
            self.waiting.end(key, changer);
        }
        broken
    }

    fn break_on(
        &self,
        now: Duration,
        changer: Option<ClientId>,
        (file, key, share): (&Arc<File>, &FileKey, Share),
        may: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mine = file.covered(key, changer);
        let broken = self.unless_expired(now, || self.try_break_if(now, file, (mine, share), may));
        if broken == Err(Error::Delay) {
            self.note_wait(now, file, changer);
        }
        broken
    }

    /// Keeps a directory free for a change that is told to come back. The holder may have returned
    /// it meanwhile.
    fn note_wait(&self, now: Duration, file: &File, changer: Option<ClientId>) {
        let left = file.state().delegations.strongest();
        if left.is_none_or(|kind| kind == DelegationKind::Directory) {
            self.waiting.begin(now, &file.key, changer);
        }
    }

    /// Recalls all delegations of files of an export because the rules of its access have changed.
    pub fn recall_export(&self, now: Duration, export: u32) {
        if !self.has_delegations() {
            return;
        }
        for file in self.files.all().iter().filter(|file| file.key.export == export) {
            self.recall(now, file, &mut file.state(), (None, Share::access(Share::BOTH)));
        }
    }

    /// Recalls all delegations of directories because the rules of exports may have changed, on
    /// which the view of a directory depends.
    pub fn recall_directories(&self, now: Duration) {
        if !self.has_delegations() {
            return;
        }
        for file in self.files.all() {
            let mut on_file = file.state();
            if on_file.delegations.strongest() == Some(DelegationKind::Directory) {
                self.recall(now, &file, &mut on_file, (None, Share::access(Share::BOTH)));
            }
        }
    }

    pub(crate) fn try_break(
        &self,
        now: Duration,
        file: &Arc<File>,
        sought: (Option<ClientId>, Share),
    ) -> Result<(), Obstacle> {
        self.try_break_if(now, file, sought, &|| true)
    }

    /// Calls `may` without the lock of the file: it may ask the file system.
    pub(crate) fn try_break_if(
        &self,
        now: Duration,
        file: &Arc<File>,
        (mine, share): (Option<ClientId>, Share),
        may: &dyn Fn() -> bool,
    ) -> Result<(), Obstacle> {
        if self.obstacle(now, &file.state(), (mine, share)).is_none() {
            return Ok(());
        }
        if !may() {
            return Err(Obstacle::Error(Error::Perm));
        }
        let mut on_file = file.state();
        let Some(holder) = self.obstacle(now, &on_file, (mine, share)) else { return Ok(()) };
        self.recall(now, file, &mut on_file, (mine, share));
        Err(Obstacle::Delegation(holder))
    }

    /// Returns a holder that an operation has to wait for: one that cannot be notified, because its
    /// delegation conflicts with the operation or because its lease has expired.
    fn obstacle(
        &self,
        now: Duration,
        on_file: &FileState,
        (mine, share): (Option<ClientId>, Share),
    ) -> Option<Holder> {
        let conflict = on_file.delegations.conflict(mine, share);
        let is_expired = |holder: Holder| {
            let client = self.clients.get(holder.client);
            client.is_none_or(|client| self.has_expired(now, &client))
        };
        conflict.or_else(|| {
            share.told()?;
            let mut others =
                on_file.delegations.iter().filter(|(holder, _)| Some(holder.client) != mine);
            let expired = others.find(|(holder, it)| it.notices.is_some() && is_expired(*holder));
            expired.map(|(holder, _)| holder)
        })
    }

    /// Notes that a CB_RECALL was sent: from now on the client has a lease's time to return the
    /// delegation. A repeated CB_RECALL, over another session, does not extend that time.
    pub fn recall_sent(&self, now: Duration, client: &Client, stateid: &Stateid) {
        self.with_delegation(client, stateid, |delegated| {
            if let Some(recall) = &mut delegated.recall {
                self.counters.recalls_sent.add(usize::from(recall.sent.is_none()));
                recall.sent.get_or_insert(now);
            }
        });
    }

    /// Returns the recalls of a client that are under way, so that they are sent again over a new
    /// session or to a new address.
    #[must_use]
    pub fn recalls(&self, client: &Arc<Client>) -> Vec<Effect> {
        let state = client.state();
        let delegated = state
            .holdings
            .states()
            .filter(|(_, state)| matches!(state.what, StateKind::Delegation(_)));
        let recalled = |(number, state): (u32, &State)| {
            let holder = Holder { client: client.id, state: number };
            let stateid = state
                .file
                .state()
                .delegations
                .get_mut(holder)
                .and_then(|delegated| delegated.recall.map(|_| delegated.stateid))?;
            let client = Arc::clone(client);
            Some(Effect::Recall { client, stateid, file: state.file.key, truncate: false })
        };
        delegated.filter_map(recalled).collect()
    }
}

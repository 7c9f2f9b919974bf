//! Delegations: granted by policy, recalled when somebody else comes, revoked when that is not
//! heeded (RFC 8881, 10.2 and 10.4).

use std::sync::Arc;
use std::time::Duration;

use crate::client::ClientState;
use crate::client_state::{Delegating, What, client_of_lock_owner};
use crate::effect::Effect;
use crate::file::{Delegated, DelegationKind, File, FileState, Holder, Recall, Share};
use crate::lookup::At;
use crate::open::Obstacle;
use crate::sync::atomic::Ordering;
use crate::{
    Claim, Client, ClientId, Desk, Engine, Error, FileKey, LockType, Open, Record, Result, Sender,
    Stateid,
};

/// Which delegation a client would like with an OPEN (`OPEN4_SHARE_ACCESS_WANT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DelegationWish {
    /// It did not say, as none of minor version 0 does.
    #[default]
    NoPreference,
    /// One for reading.
    Read,
    /// One for writing.
    Write,
    /// Either.
    Any,
    /// None.
    None,
    /// None, and not what it asked for earlier either.
    Cancel,
}

/// What a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delegation {
    /// A delegation.
    Granted {
        /// By what it goes.
        stateid: Stateid,
        /// What it allows.
        kind: DelegationKind,
        /// Whether it must be given back at once: reclaimed, while somebody waits for it.
        recall: bool,
    },
    /// None.
    Refused(NoDelegation),
}

/// Why there is none (`why_no_delegation4`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDelegation {
    /// The client did not want one.
    NotWanted,
    /// Others use the file, or did just now.
    Contention,
    /// No delegation is given, or not to this client, or none more.
    Resource,
    /// What it asked for earlier is cancelled.
    Cancelled,
}

/// Whether others have or want locks that the holder of a delegation would not see: it locks
/// without asking. Those of NLM are under no open.
fn locked(on_file: &FileState, client: &Client, kind: DelegationKind) -> bool {
    let kind = match kind {
        DelegationKind::Read => LockType::Read,
        DelegationKind::Write => LockType::Write,
    };
    let is_other = |owner: u64| client_of_lock_owner(owner) != client.id.number();
    !on_file.locks.is_empty() && on_file.locks.stands_against(kind, is_other)
}

impl Engine {
    /// Gives a delegation with an open, if it is wise.
    pub(crate) fn delegate(
        &self,
        now: Duration,
        open: &Open<'_>,
        file: &Arc<File>,
        (state, on_file): (&mut ClientState, &mut FileState),
    ) -> Delegation {
        let kind = match self.choose(now, open, on_file) {
            Ok(kind) => kind,
            Err(why) => return Delegation::Refused(why),
        };
        let limits = &self.settings.limits;
        let (user, access) = (open.user.cloned(), open.share.access);
        let what = What::Delegation(Delegating { kind, user, access });
        let Ok(number) = state.holdings.insert(limits, (now, file), what) else {
            return Delegation::Refused(NoDelegation::Resource);
        };
        let stateid = Stateid::new(open.client.id, number, 1);
        let holder = Holder { client: open.client.id, state: number };
        let principal = open.caller.principal;
        let delegated =
            Delegated { kind, stateid, principal, recall: None, given: None, writer: None };
        on_file.delegations.insert(holder, delegated);
        self.files.delegations.fetch_add(1, Ordering::AcqRel);
        Delegation::Granted { stateid, kind, recall: false }
    }

    /// The policy: none in conflict, none to a client whose last one was recalled just now, none
    /// beyond the bound, none to who cannot be called back.
    fn choose(
        &self,
        now: Duration,
        open: &Open<'_>,
        on_file: &FileState,
    ) -> Result<DelegationKind, NoDelegation> {
        let wanted = match (open.claim, open.wish) {
            // A reclaim gets what it had, or nothing.
            (Claim::Previous(had), _) => had.ok_or(NoDelegation::NotWanted)?,
            (_, DelegationWish::None) => return Err(NoDelegation::NotWanted),
            (_, DelegationWish::Cancel) => return Err(NoDelegation::Cancelled),
            (Claim::Delegated(_), _) => return Err(NoDelegation::NotWanted),
            (_, DelegationWish::Read) => DelegationKind::Read,
            _ if open.share.access & Share::WRITE != 0 => DelegationKind::Write,
            _ => DelegationKind::Read,
        };
        let reclaims = matches!(open.claim, Claim::Previous(_));
        let full =
            self.files.delegations.load(Ordering::Acquire) >= self.settings.limits.delegations;
        if !self.settings.delegations || full || !(reclaims || open.client.has_callbacks()) {
            return Err(NoDelegation::Resource);
        }
        let holder = Holder { client: open.client.id, state: 0 };
        let others = match wanted {
            DelegationKind::Read => on_file.shares.is_written(),
            DelegationKind::Write => on_file.shares.others(holder, Share::BOTH),
        };
        let used = others || on_file.by_many_exports;
        let share = match wanted {
            DelegationKind::Read => Share::access(Share::READ),
            DelegationKind::Write => Share::access(Share::BOTH),
        };
        let held = on_file.delegations.of(open.client.id).is_some()
            || on_file.delegations.conflict(Some(open.client.id), share).is_some();
        let tired = !reclaims && on_file.delegations.is_tired(now, open.client.id);
        let contended = used || held || tired || locked(on_file, open.client, wanted);
        if contended { Err(NoDelegation::Contention) } else { Ok(wanted) }
    }

    /// Begins to recall what others hold against a share.
    pub(crate) fn recall(
        &self,
        now: Duration,
        file: &Arc<File>,
        on_file: &mut FileState,
        (mine, share): (Option<ClientId>, Share),
    ) {
        let rest = now.saturating_add(self.settings.recall_rest);
        let mut tired = Vec::new();
        for (holder, delegated) in on_file.delegations.iter_mut() {
            let stands = delegated.kind == DelegationKind::Write || share.ends_reading();
            if Some(holder.client) == mine || !stands || delegated.recall.is_some() {
                continue;
            }
            // Whose lease is over is not asked: it is sent away by who looks again.
            let client = self.clients.get(holder.client);
            let Some(client) = client.filter(|client| !self.has_expired(now, client)) else {
                continue;
            };
            delegated.recall =
                Some(Recall { queued: now, sent: None, until: None, wanted_by: mine });
            tired.push(holder.client);
            let (stateid, file) = (delegated.stateid, file.key);
            self.outbox.push(Effect::Recall { client, stateid, file, truncate: false });
        }
        tired.into_iter().for_each(|client| on_file.delegations.tire(client, rest));
        self.watch(file);
    }

    /// Recalls what others than `mine` hold of a file and an operation stands against: READ or
    /// WRITE without an open, SETATTR, REMOVE, RENAME, LINK; of any protocol. A client's own
    /// operation never recalls its own delegation.
    ///
    /// # Errors
    /// [`Error::Delay`]: they are being recalled.
    pub fn break_delegations(
        &self,
        now: Duration,
        mine: Option<&Client>,
        key: &FileKey,
        share: Share,
    ) -> Result<()> {
        let Some(file) = self.files.get(key) else { return Ok(()) };
        let mine = file.covered(key, mine.map(|client| client.id));
        self.unless_expired(now, || self.try_break(now, &file, (mine, share)))
    }

    /// Recalls all that is delegated of the files of an export, since it has changed who may see
    /// them.
    pub fn recall_export(&self, now: Duration, export: u32) {
        if !self.has_delegations() {
            return;
        }
        for file in self.files.all().iter().filter(|file| file.key.export == export) {
            self.recall(now, file, &mut file.state(), (None, Share::access(Share::BOTH)));
        }
    }

    pub(crate) fn try_break(
        &self,
        now: Duration,
        file: &Arc<File>,
        (mine, share): (Option<ClientId>, Share),
    ) -> Result<(), Obstacle> {
        let mut on_file = file.state();
        let Some(holder) = on_file.delegations.conflict(mine, share) else { return Ok(()) };
        self.recall(now, file, &mut on_file, (mine, share));
        Err(Obstacle::Delegation(holder))
    }

    /// A CB_RECALL has left: the client has a lease's time from now on to heed it. Said again,
    /// because it had to be sent again over another session, it changes nothing.
    pub fn recall_sent(&self, now: Duration, client: &Client, stateid: &Stateid) {
        self.with_delegation(client, stateid, |delegated| {
            if let Some(recall) = &mut delegated.recall {
                self.tally.recalls_sent.add(usize::from(recall.sent.is_none()));
                recall.sent.get_or_insert(now);
            }
        });
    }

    /// The recalls of a client that are under way, for a session or address that is new.
    #[must_use]
    pub fn recalls(&self, client: &Arc<Client>) -> Vec<Effect> {
        let state = client.state();
        let delegated =
            state.holdings.states().filter(|(_, state)| matches!(state.what, What::Delegation(_)));
        let recalled = |(number, state): (u32, &crate::client_state::State)| {
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

    /// DELEGRETURN (RFC 8881, 18.6); also what is done with a delegation that was granted and
    /// cannot be kept.
    ///
    /// # Errors
    /// As a stateid is refused, also for another file than its own; [`Error::WrongCred`]: it was
    /// given to another principal.
    pub fn delegreturn(&self, shown: At<'_>, stateid: &Stateid) -> Result<()> {
        let (sender, _) = shown;
        let found = self.find(sender, stateid)?;
        let (client, number) = (&found.client, found.number);
        let mut state = client.live()?;
        match found.current(&mut state, shown, stateid)?.what {
            What::Delegation(_) => {}
            _ => return Err(Error::BadStateid),
        }
        let returned = state.holdings.remove(number);
        if let Some(returned) = returned {
            let holder = Holder { client: client.id, state: number };
            let recalled = returned.file.state().delegations.is_recalled(holder);
            self.tally.recalls_returned.add(usize::from(recalled));
            self.release_state(sender.now, holder, &returned, &mut Vec::new());
        }
        Ok(())
    }

    /// Whether a delegation is this client's for this file, and allows this share.
    pub(crate) fn check_delegation(
        &self,
        sender: Sender<'_>,
        stateid: &Stateid,
        file: &FileKey,
        share: Share,
    ) -> Result<()> {
        let found = self.find(sender, stateid)?;
        let state = found.client.live()?;
        let state = found.look(&state, sender, stateid)?;
        let What::Delegation(delegating) = &state.what else { return Err(Error::BadStateid) };
        if state.file.key != *file {
            return Err(Error::BadStateid);
        }
        if delegating.kind.allows(share.access) { Ok(()) } else { Err(Error::Openmode) }
    }

    pub(crate) fn drop_delegation(&self, file: &File, on_file: &mut FileState, holder: Holder) {
        if on_file.delegations.remove(holder).is_some() {
            self.files.delegations.fetch_sub(1, Ordering::AcqRel);
            self.tell_undelegated(file.key);
        }
    }

    /// Takes back by force what was not given back in time.
    pub(crate) fn revoke_overdue(&self, now: Duration, file: &Arc<File>) {
        let mut on_file = file.state();
        on_file.delegations.refresh(now);
        let overdue = on_file.delegations.iter_mut().filter(|(_, delegated)| {
            delegated.recall.is_some_and(|recall| self.is_overdue(now, recall))
        });
        let overdue: Vec<Holder> = overdue.map(|(holder, _)| holder).collect();
        drop(on_file);
        self.tally.recalls_overdue.add(overdue.len());
        for holder in overdue {
            if let Some(client) = self.clients.get(holder.client) {
                self.revoke(file, &client, holder);
            }
        }
    }

    /// A recall that could not be sent ends too: after twice the time.
    fn is_overdue(&self, now: Duration, recall: Recall) -> bool {
        if recall.until.is_some_and(|until| now >= until) {
            return true;
        }
        let lease = self.settings.lease;
        let sent = recall.sent.map(|sent| sent.saturating_add(lease));
        let queued = recall.queued.saturating_add(lease * 2);
        now >= sent.map_or(queued, |sent| sent.min(queued))
    }

    fn revoke(&self, file: &Arc<File>, client: &Arc<Client>, holder: Holder) {
        let mut state = client.state();
        if !state.holdings.revoke(holder.state) {
            return;
        }
        if client.desk == Desk::Setclientid {
            // Minor version 0 has no way to free it.
            state.holdings.remove(holder.state);
        }
        client.note_revoked(&state);
        self.tally.revoked.add(1);
        self.drop_delegation(file, &mut file.state(), holder);
        self.record(Record::Revoked(client.recorded(), file.key));
    }

    pub(crate) fn with_delegation(
        &self,
        client: &Client,
        stateid: &Stateid,
        act: impl FnOnce(&mut Delegated),
    ) {
        let Ok((id, number)) = stateid.place() else { return };
        let state = client.state();
        let Some(known) = state.holdings.get(number).filter(|_| id == client.id) else { return };
        let holder = Holder { client: id, state: number };
        if let Some(delegated) = known.file.state().delegations.get_mut(holder) {
            act(delegated);
        }
    }
}

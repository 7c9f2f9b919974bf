//! Clients that move to another engine with their state, as plain values. Only layouts stay behind.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::joining::Joined;
use super::owners::owners_of;
use super::returning::Merge;
use crate::channel::{Connections, Creation, Slots};
use crate::client::{Adopted, Names, NewClient};
use crate::client_state::{
    ClientState, DelegationState, Holdings, LockState, Owner, Standing, State, StateKind,
    UnacknowledgedGrant, lock_owner,
};
use crate::delegations::is_watcher;
use crate::file::{Delegated, File, Holder, Recall, Writer};
use crate::session::{Back, Channels};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering;
use crate::{
    Caller, Client, DelegationKind, Effect, Engine, Error, ExportedClient, ExportedKind,
    ExportedOwner, ExportedSession, ExportedState, ExportedWait, FileKey, Offer, Record, Result,
    Session, SessionId, Share, StateName,
};

/// The part of a client's state that is exported.
pub(super) struct ExportedPart<'a> {
    /// Returns whether states of this file belong to it.
    pub(super) of: &'a dyn Fn(&FileKey) -> bool,
    /// The lock-owners that wait for locks in it.
    pub(super) waiting: &'a HashSet<u64>,
    /// True if it is all of the client's state, so that its sessions belong to it.
    pub(super) whole: bool,
    /// The address that moves, if one does: the sessions that were made by it belong to the part,
    /// and no others.
    pub(super) address: Option<IpAddr>,
}

impl ExportedPart<'_> {
    fn has_session(&self, session: &Session) -> bool {
        match self.address {
            Some(address) => session.channels().address == Some(address),
            None => self.whole,
        }
    }
}

/// A client whose state was imported, and what is needed to undo that.
pub(super) enum Arrival {
    /// It was not known here.
    New(Adopted),
    /// It was known here.
    Known(Arc<Client>, Merge, Box<Joined>),
}

impl Arrival {
    pub(super) const fn client(&self) -> &Arc<Client> {
        match self {
            Self::New(adopted) => &adopted.client,
            Self::Known(client, ..) => client,
        }
    }

    /// Returns the state of the client as it is here, which was given as `exported`.
    const fn state<'a>(&'a self, exported: &'a ExportedClient) -> &'a ExportedClient {
        match self {
            Self::New(_) => exported,
            Self::Known(.., joined) => &joined.client,
        }
    }

    /// Returns the wait of one of its owners as it is here.
    pub(super) fn wait(&self, wait: &ExportedWait) -> ExportedWait {
        match self {
            Self::New(_) => wait.clone(),
            Self::Known(.., joined) => joined.wait(wait),
        }
    }
}

impl Engine {
    /// Returns a confirmed client with its state, except layouts, as a plain value. The client also
    /// stays in this engine. The shell must stop this engine, or evict the client, before another
    /// engine serves it.
    ///
    /// # Errors
    /// [`Error::Expired`]: the client was forgotten. [`Error::StaleClientid`]: it is not confirmed.
    /// [`Error::Delay`]: a request of it, or a notification to it, is under way.
    pub fn export_client(&self, now: Duration, client: &Arc<Client>) -> Result<ExportedClient> {
        let waiting = &HashSet::new();
        let part = ExportedPart { of: &|_| true, waiting, whole: true, address: None };
        self.export_part(now, client, &part)
    }

    /// Does the same as [`Engine::export_client`] for a part of its state. A client whose other
    /// state stays keeps its sessions.
    pub(super) fn export_part(
        &self,
        now: Duration,
        client: &Arc<Client>,
        part: &ExportedPart<'_>,
    ) -> Result<ExportedClient> {
        let state = client.live()?;
        if state.standing != Standing::Confirmed {
            return Err(Error::StaleClientid);
        }
        let mut waits = false;
        for (number, held) in state.holdings.states() {
            waits |= self.recall_watched(now, client, (number, held));
            waits |= awaits_notices(client, (number, held));
        }
        if waits {
            return Err(Error::Delay);
        }
        let sessions = state.sessions.iter().filter_map(|id| self.session(id));
        let sessions = sessions.filter(|session| part.has_session(session));
        let sessions: Result<_> = sessions.map(|session| session.exported(now)).collect();
        let states = state.holdings.states().filter(|(_, it)| (part.of)(&it.file.key));
        let export =
            |it: (u32, &State)| export_state(now, (client, state.holdings.foreign_name(it.0)), it);
        let mut states: Vec<_> = states.filter_map(export).collect();
        states.sort_unstable_by_key(|state| state.number);
        let owners = export_owners(now, client, (&state, &states), part)?;
        let granted = state.granted.iter().filter(|grant| (part.of)(&grant.file));
        let granted = granted.map(UnacknowledgedGrant::exported).collect();
        Ok(ExportedClient {
            id: client.id,
            given_out: self.clients.given_out(),
            protocol: client.protocol,
            name: client.name(),
            introduced_by: client.introducer(),
            origin: client.origin(),
            silent: now.saturating_sub(client.renewed()),
            courteous: client.is_courteous(),
            told: client.told().map(|told| now.saturating_sub(told)),
            callback: state.callback.clone(),
            announced: state.announced.clone(),
            confirmed_by: state.confirmed_by,
            reclaim_complete: state.reclaim_complete,
            monitor_state: client.monitor_state(),
            create_sequenceid: state.creation.sequenceid,
            created: state.creation.answer,
            sessions_made: state.sessions_made,
            last_number: state.holdings.last_number(),
            granted,
            sessions: sessions?,
            owners,
            states,
        })
    }

    /// Takes in a client that another engine has exported: its clientid, sessions and stateids go
    /// on. Either all of it is taken in or nothing. A client that is known here keeps its clientid
    /// and its sessions here, and the stateids of both engines stay valid. The secret and the
    /// boot number of the other engine do not matter: clientids and sessionids are looked up, and
    /// only their creation takes the secret.
    ///
    /// # Errors
    /// [`Error::Inval`]: no engine gives out such a clientid; [`Error::ClidInuse`]: its clientid or
    /// its name is taken here, or a stateid names another state here; [`Error::ReclaimConflict`]:
    /// another client has what it has; [`Error::Delay`], [`Error::Resource`]: a bound is reached.
    pub fn import_client(&self, now: Duration, exported: &ExportedClient) -> Result<Arc<Client>> {
        let mut names = self.clients.names();
        self.make_room(now, &mut names, exported.origin)?;
        let arrival = self.adopt_client(now, &mut names, exported)?;
        self.settle_client(now, &mut names, (&arrival, exported));
        Ok(Arc::clone(arrival.client()))
    }

    /// Adds a client with its state, which is not confirmed yet, or adds its state to the client if
    /// that has returned. Adds nothing if that fails.
    pub(super) fn adopt_client(
        &self,
        now: Duration,
        names: &mut Names,
        exported: &ExportedClient,
    ) -> Result<Arrival> {
        if let Some(client) = self.returning(now, names, exported) {
            let (merge, joined) = self.take_back(now, &client, exported)?;
            return Ok(Arrival::Known(client, merge, Box::new(joined)));
        }
        let name = exported.recorded();
        if names.confirmed(&name).is_some_and(|holder| self.keeps_name(now, holder)) {
            return Err(Error::ClidInuse);
        }
        let caller = Caller { origin: exported.origin, ..exported.introduced_by };
        let (protocol, owner) = (exported.protocol, exported.name.clone());
        let new = NewClient { protocol, owner, caller, announced: None };
        let renewed = now.saturating_sub(exported.silent);
        let adopted = self.clients.adopt(renewed, names, (exported.id, new), &self.held)?;
        let imported = self.import_state(now, &adopted.client, exported);
        let arrival = Arrival::New(adopted);
        match imported {
            Ok(()) => Ok(arrival),
            Err(error) => {
                self.undo_import(now, names, arrival);
                Err(error)
            }
        }
    }

    /// Confirms a client that is new here, records it, and has its callbacks probed. A client that
    /// had its name, and did not use it any more, loses its state.
    pub(super) fn settle_client(
        &self,
        now: Duration,
        names: &mut Names,
        (arrival, exported): (&Arrival, &ExportedClient),
    ) {
        let (client, exported) = (arrival.client(), arrival.state(exported));
        self.clients.pass_over(exported.id, exported.given_out);
        match arrival {
            Arrival::Known(..) => self.settle_return(now, client, exported),
            Arrival::New(_) => {
                let old = self.confirm(names, client);
                // An introduction of it that is not confirmed yet is dropped. The client repeats
                // it, and then gets this record.
                let again = names.unconfirmed_instances(client);
                old.into_iter().chain(again).for_each(|old| self.discard(now, names, &old));
            }
        }
        if exported.callback.is_some() {
            // A probe shows whether callbacks from this engine reach the client.
            self.effect_queue.push(Effect::Probe { client: Arc::clone(client) });
        }
        if exported.reclaim_complete {
            self.record(client.arrival_record());
        }
        let revoked = client.state().holdings.revoked_files();
        for file in revoked {
            self.record(Record::Revoked(client.recorded(), file));
        }
    }

    fn import_state(
        &self,
        now: Duration,
        client: &Arc<Client>,
        exported: &ExportedClient,
    ) -> Result<()> {
        client.set_monitor_state(exported.monitor_state);
        client.set_courteous(exported.courteous);
        client.set_told(exported.told.map(|told| now.saturating_sub(told)));
        let mut state = client.live()?;
        state.callback.clone_from(&exported.callback);
        state.announced.clone_from(&exported.announced);
        state.confirmed_by = exported.confirmed_by;
        state.granted = exported.granted.iter().map(UnacknowledgedGrant::imported).collect();
        state.holdings.continue_after(exported.last_number);
        state.reclaim_complete = exported.reclaim_complete;
        state.sessions_made = exported.sessions_made;
        let (sequenceid, answer) = (exported.create_sequenceid, exported.created);
        state.creation = Creation { sequenceid, answer };
        self.add_state(now, client, &mut state, exported)?;
        client.note_revoked(&state);
        client.note_grantees(&state);
        Ok(())
    }

    /// Adds sessions, owners and states. If the client would have too many sessions, the oldest of
    /// the other engine are left out: it makes new ones.
    pub(super) fn add_state(
        &self,
        now: Duration,
        client: &Arc<Client>,
        state: &mut ClientState,
        exported: &ExportedClient,
    ) -> Result<()> {
        let room = self.settings.limits.sessions_per_client.saturating_sub(state.sessions.len());
        let is_new = |it: &&ExportedSession| !state.sessions.contains(&it.id);
        let new: Vec<_> = exported.sessions.iter().filter(is_new).collect();
        for session in new.iter().skip(new.len().saturating_sub(room)) {
            if self.session(&session.id).is_some() {
                return Err(Error::ClidInuse);
            }
            state.sessions.push(self.import_session(now, client, session)?);
        }
        for owner in &exported.owners {
            let restored = Owner::imported(now, owner.clone());
            state.holdings.restore_owner(owner.number, restored)?;
        }
        exported.states.iter().try_for_each(|it| self.import_one(now, client, state, it))
    }

    /// Adds the sessions with which a client came by an address. A client that is known here by
    /// another clientid goes on in them, too, since it does not notice that the address has moved.
    pub(super) fn keep_sessions(
        &self,
        now: Duration,
        (client, exported): (&Arc<Client>, &ExportedClient),
        address: IpAddr,
    ) {
        for it in &exported.sessions {
            let mut state = client.state();
            let is_full = state.sessions.len() >= self.settings.limits.sessions_per_client;
            if self.session(&it.id).is_none() && !is_full {
                // Without memory for its replies the client makes another one.
                state.sessions.extend(self.import_session(now, client, it));
            }
            drop(state);
            if let Some(session) = self.session(&it.id) {
                session.made_at(address);
                let mut channels = session.channels();
                channels.slots.catch_up(it);
                channels.slots.expect_gaps();
            }
        }
    }

    fn import_session(
        &self,
        now: Duration,
        client: &Arc<Client>,
        exported: &ExportedSession,
    ) -> Result<SessionId> {
        let slots = Slots::imported(self.replies(client), exported)?;
        let (channel, connections) = (exported.back.clone(), Connections::default());
        let back = Back { channel, connections, fault: false, worked: false };
        let channels = Mutex::new(Channels { slots, back, address: None });
        let made = now.saturating_sub(exported.age);
        let (id, fore) = (exported.id, exported.fore);
        self.sessions.insert(Arc::new(Session {
            id,
            client: Arc::clone(client),
            made,
            fore,
            channels,
        }));
        Ok(id)
    }

    fn import_one(
        &self,
        now: Duration,
        client: &Arc<Client>,
        state: &mut ClientState,
        exported: &ExportedState,
    ) -> Result<()> {
        let file = if exported.kind.is_over() {
            File::placeholder(exported.file)
        } else {
            self.file(&exported.file)?
        };
        let holder = Holder { client: client.id, state: exported.number };
        let restored = State {
            file: Arc::clone(&file),
            seqid: exported.seqid,
            since_seconds: now.saturating_sub(exported.age).as_secs() as u32,
            what: exported.kind.imported(),
        };
        let taken = state.holdings.restore(exported.number, restored, exported.known_as);
        let taken = taken.and_then(|()| self.take_in_file(now, &file, holder, exported));
        if taken.is_err() {
            // The file has no record of the state, so nothing must be released there.
            state.holdings.remove(exported.number);
            self.files.let_go(now, &file);
        }
        taken
    }

    /// Adds a state to its file. Changes nothing if another client's state conflicts.
    fn take_in_file(
        &self,
        now: Duration,
        file: &Arc<File>,
        holder: Holder,
        exported: &ExportedState,
    ) -> Result<()> {
        let mut on_file = file.state();
        let share = exported.kind.share();
        let stands = |share| on_file.delegations.conflict(Some(holder.client), share).is_some();
        if share.is_some_and(stands) {
            return Err(Error::ReclaimConflict);
        }
        match &exported.kind {
            ExportedKind::Open { closed: true, .. } | ExportedKind::Revoked(_) => {}
            ExportedKind::Open { share, .. } => {
                let denied = on_file.shares.conflict(None, *share);
                if denied.is_some_and(|other| other.client != holder.client) {
                    return Err(Error::ReclaimConflict);
                }
                on_file.by_many_exports |= exported.file.export != file.key.export;
                self.set_share(&mut on_file, holder, Some(*share));
            }
            ExportedKind::Lock { owner, ranges, .. } => {
                let owner = lock_owner(holder.client, *owner);
                let wish = |(range, kind): &(_, _)| Offer { owner, range: *range, kind: *kind };
                if ranges.iter().any(|lock| on_file.locks.blocker(wish(lock)).is_some()) {
                    return Err(Error::ReclaimConflict);
                }
                for lock in ranges {
                    let taken = on_file.locks.lock(now, wish(lock), None, &mut Vec::new());
                    taken.map_err(|_| Error::ReclaimConflict)?;
                }
            }
            ExportedKind::Delegation { kind, given, recall, writer, .. } => {
                let others = match kind {
                    DelegationKind::Directory | DelegationKind::Read => Share::WRITE,
                    DelegationKind::Write => Share::BOTH,
                };
                if on_file.shares.others(holder, others) {
                    return Err(Error::ReclaimConflict);
                }
                let stateid = exported.name(holder.client).at(exported.seqid);
                let recall = recall.as_ref().map(|recall| Recall::imported(now, recall));
                let writer = writer.as_ref().map(|it| Box::new(Writer::imported(now, it)));
                // Without notifications each change recalls the delegation.
                let delegated = Delegated::new(*kind, stateid, None);
                let delegated = Delegated { recall, writer, given: *given, ..delegated };
                on_file.delegations.insert(holder, delegated);
                self.files.delegations.fetch_add(1, Ordering::AcqRel);
            }
        }
        Ok(())
    }

    /// Forgets a client that was not imported after all, or removes what was added to one that has
    /// returned.
    pub(super) fn undo_import(&self, now: Duration, names: &mut Names, arrival: Arrival) {
        let adopted = match arrival {
            Arrival::Known(client, merge, _) => return self.undo_return(now, &client, merge),
            Arrival::New(adopted) => adopted,
        };
        let client = &adopted.client;
        let mut state = client.state();
        state.standing = Standing::Gone;
        let sessions = std::mem::take(&mut state.sessions);
        let holdings: Holdings = state.holdings.take();
        drop(state);
        self.clients.disown(names, &adopted);
        sessions.iter().for_each(|session| self.drop_session(session));
        self.release(now, client, holdings);
    }
}

impl Engine {
    /// Recalls a directory whose holder is notified of attributes of its children: another engine
    /// does not know which ones the holder has seen. Returns whether it is such a directory.
    fn recall_watched(
        &self,
        now: Duration,
        client: &Client,
        (number, state): (u32, &State),
    ) -> bool {
        let holder = Holder { client: client.id, state: number };
        let mut on_file = state.file.state();
        let is_watched = on_file.delegations.get_mut(holder).is_some_and(|held| is_watcher(held));
        if is_watched {
            self.recall_of(now, &state.file, &mut on_file, holder);
        }
        is_watched
    }
}

/// Returns whether a client has notifications of a directory to acknowledge.
fn awaits_notices(client: &Client, (number, state): (u32, &State)) -> bool {
    let holder = Holder { client: client.id, state: number };
    let mut on_file = state.file.state();
    let delegated = on_file.delegations.get_mut(holder);
    let notices = delegated.and_then(|delegated| delegated.notices.as_ref());
    notices.is_some_and(|notices| !notices.are_acknowledged())
}

/// Returns the owners of a part of a client's states.
fn export_owners(
    now: Duration,
    client: &Client,
    (state, states): (&ClientState, &[ExportedState]),
    part: &ExportedPart<'_>,
) -> Result<Vec<ExportedOwner>> {
    let numbers: HashSet<u32> = states.iter().map(|it| it.number).collect();
    let owners = owners_of(client, state, part).into_iter();
    let owners = owners.filter_map(|number| Some((number, state.holdings.owner(number)?)));
    owners
        .map(|(number, owner)| {
            let exported = owner.exported(now, number)?;
            let closed = exported.closed.filter(|closed| numbers.contains(closed));
            Ok(ExportedOwner { closed, ..exported })
        })
        .collect()
}

/// Returns a state as a plain value. Layouts stay behind: the data servers of another server are
/// others.
fn export_state(
    now: Duration,
    (client, known_as): (&Client, Option<StateName>),
    (number, state): (u32, &State),
) -> Option<ExportedState> {
    let kind = match &state.what {
        StateKind::Open(open) => open.exported(),
        StateKind::Lock(lock) => {
            let owner = lock_owner(client.id, lock.owner);
            let ranges = state.file.state().locks.held_by(owner).collect();
            let LockState { owner, open, ranges: counted, shared } = *lock;
            ExportedKind::Lock { owner, open, counted, ranges, shared }
        }
        StateKind::Delegation(delegation) => {
            let DelegationState { kind, principal, user, access, grantee } = delegation.clone();
            let holder = Holder { client: client.id, state: number };
            let mut on_file = state.file.state();
            let held = on_file.delegations.get_mut(holder);
            let given = held.as_ref().and_then(|it| it.given);
            let recall = held.as_ref().and_then(|it| Some(it.recall?.exported(now)));
            let writer = held.and_then(|it| Some(it.writer.as_deref()?.exported(now)));
            ExportedKind::Delegation {
                kind,
                principal,
                user,
                access,
                given,
                grantee,
                recall,
                writer,
            }
        }
        StateKind::Layout(_) => return None,
        StateKind::Revoked(revoked) => ExportedKind::Revoked(*revoked),
    };
    Some(state.exported(now, (number, known_as), kind))
}

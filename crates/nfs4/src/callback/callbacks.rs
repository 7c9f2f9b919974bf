use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use comity_export::{Exports, Plan};
use comity_proto::nfs4::Nfsstat4;
use comity_rpc::Backchannel;
use comity_state::{
    CallbackSecurity, Client, ClientId, ClientProtocol, Effect, Engine, FileKey, OriginChannel,
    Stateid,
};

use super::address;
use super::answer::{self, Answer};
use super::call::{self, Address, Sequence};
use super::route::{NoWay, Routes};
use super::{layout_recall, notify};
use crate::limits::{CALLBACK_RETRY_SECONDS, CALLBACK_SECONDS, PROBES_MAX};

/// Takes the result of an attempt to connect to a client; it is called once.
pub type Dialed = Box<dyn FnOnce(io::Result<Arc<Backchannel>>) + Send>;

/// Begins to connect to an address, and calls `Dialed` with the result later. It does not wait.
pub type Dial = dyn Fn(SocketAddr, Dialed) + Send + Sync;

/// Sends a message of the engine to a host of NFSv3.
pub type Others = dyn Fn(Effect) + Send + Sync;

/// The callbacks of the server to its clients.
pub struct Callbacks {
    engine: Arc<Engine>,
    exports: Arc<Exports>,
    dial: Box<Dial>,
    others: Box<Others>,
    book: Mutex<Book>,
}

/// Routes to clients, calls under way, and clients to which calls must be sent again.
#[derive(Default)]
struct Book {
    routes: Routes,
    /// Calls under way, by connection and xid.
    said: HashMap<(u64, u32), Said>,
    /// Callbacks that wait for a free slot, because as many calls as the session allows are under
    /// way.
    waiting: HashMap<ClientId, VecDeque<Effect>>,
    /// Clients with recalls or CB_OFFLOADs that could not be sent or were refused, and the time of
    /// the failure.
    unsaid: HashMap<ClientId, (Duration, Arc<Client>)>,
    /// Clients to which a connection is being made; true if another one must be made after that.
    dialling: HashMap<ClientId, bool>,
    /// Number of unanswered probes of each client.
    probes: HashMap<ClientId, u32>,
}

/// A call under way.
struct Said {
    effect: Effect,
    sequence: Option<Sequence>,
    until: Duration,
}

impl Callbacks {
    /// Makes the sender of `engine`'s messages. `dial` connects to clients of minor version 0.
    /// `others` gets the messages that are not for clients of NFSv4.
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        exports: Arc<Exports>,
        dial: Box<Dial>,
        others: Box<Others>,
    ) -> Self {
        Self { engine, exports, dial, others, book: Mutex::default() }
    }

    /// Adds a connection that a client has bound to a session's back channel.
    pub fn add_line(&self, line: &Arc<Backchannel>) {
        self.book().routes.add_line(line);
    }

    /// Sends all messages that the engine has. It must be called after every call that may have
    /// caused one. It is cheap if there is none.
    pub fn pump(self: &Arc<Self>, now: Duration) {
        self.engine.notify_children(now);
        while let Some(effect) = self.engine.poll_effect() {
            if let Some(effect) = self.completed(now, effect) {
                // A failure has been noted already.
                let _ = self.say(now, effect);
            }
        }
    }

    /// Reads the attributes that a notification needs. Returns `None` if nothing is left to tell.
    fn completed(&self, now: Duration, effect: Effect) -> Option<Effect> {
        let Effect::Notify { client, stateid, directory, wishes, batch } = effect else {
            return Some(effect);
        };
        match notify::with_attributes(&self.exports.current(), &batch) {
            Some(batch) => Some(Effect::Notify { client, stateid, directory, wishes, batch }),
            None => {
                self.engine.notices_answered(now, &client, (&directory, &stateid), true);
                None
            }
        }
    }

    /// Processes deadlines: calls without a reply count as lost, and failed callbacks are sent
    /// again. It must be called about once a second.
    pub fn tick(self: &Arc<Self>, now: Duration) {
        let overdue = self.book().overdue(now);
        overdue.into_iter().for_each(|said| self.failed(now, &said.effect));
        let due = self.book().due(now);
        due.iter().for_each(|client| self.say_again(now, client));
        self.pump(now);
    }

    /// Processes a reply that arrived on a connection. Returns `false` if no call with its xid was
    /// ever sent there. A reply that comes too late is ignored.
    pub fn heard(self: &Arc<Self>, now: Duration, line: u64, record: &[u8]) -> bool {
        let Some((xid, rest)) = answer::reply(record) else { return false };
        let mut book = self.book();
        let Some(said) = book.said.remove(&(line, xid)) else {
            return book.routes.has_called(line, xid);
        };
        book.over(&said.effect);
        drop(book);
        let answer = match said.effect {
            Effect::Probe { .. } => answer::null(rest),
            _ => answer::compound(rest),
        };
        if let Some(sequence) = said.sequence {
            let used = answer.is_some_and(|answer| is_used(&answer));
            self.book().routes.release(sequence, used);
        }
        match answer {
            Some(answer) => self.answered(now, &said.effect, &answer),
            None => self.failed(now, &said.effect),
        }
        self.say_waiting(now, client_of(&said.effect).id());
        true
    }

    /// Sends a message. If that is impossible, notes the failure.
    fn say(self: &Arc<Self>, now: Duration, effect: Effect) -> Result<(), NoWay> {
        let client = Arc::clone(client_of(&effect));
        let said = match client.protocol() {
            ClientProtocol::ExchangeId => self.say_in_session(now, &client, &effect),
            ClientProtocol::Setclientid => self.say_to_dialled(now, &client, &effect),
            ClientProtocol::Nlm => {
                (self.others)(effect);
                return Ok(());
            }
        };
        let is_dialled = client.protocol() == ClientProtocol::Setclientid;
        match (said, &effect) {
            (Ok(()), Effect::Recall { stateid, .. }) => {
                self.engine.recall_sent(now, &client, stateid);
            }
            (Ok(()), Effect::RecallLayout { stateid, .. }) => {
                self.engine.layout_recall_sent(now, &client, stateid);
            }
            (Ok(()), _) | (Err(NoWay::Busy), _) => {}
            (Err(NoWay::Closed), Effect::Probe { .. }) if is_dialled => {
                self.dial(now, &client, effect);
            }
            // Another session may be reachable, and this one receives the target with its next
            // SEQUENCE.
            (Err(NoWay::Closed), Effect::RecallSlot { .. }) => {}
            (Err(NoWay::Closed), _) => self.failed(now, &effect),
        }
        said
    }

    fn say_in_session(&self, now: Duration, client: &Client, effect: &Effect) -> Result<(), NoWay> {
        let mut book = self.book();
        let route = match effect {
            Effect::RecallSlot { session, .. } => book.routes.of_session(&self.engine, session)?,
            _ => book.routes.find(&self.engine, client)?,
        };
        let sequence = match effect {
            Effect::Probe { .. } => None,
            _ => match book.routes.take_slot(&self.engine, &route) {
                Some(sequence) => Some(sequence),
                None => {
                    book.wait(effect);
                    return Err(NoWay::Busy);
                }
            },
        };
        let security = route.channel.security.first().unwrap_or(&CallbackSecurity::None);
        let (xid, minor) = (route.line.next_xid(), route.channel.minor);
        let program = route.channel.program;
        let address = Address { xid, minor, program, security, sequence, ident: 0 };
        self.send(&mut book, now, &route.line, (&address, effect))
    }

    fn say_to_dialled(&self, now: Duration, client: &Client, effect: &Effect) -> Result<(), NoWay> {
        let mut book = self.book();
        let callback = client.callback_address().ok_or(NoWay::Closed)?;
        let to = address::socket(&callback).ok_or(NoWay::Closed)?;
        let line = book.routes.dialled(client.id(), to).ok_or(NoWay::Closed)?;
        let (xid, security) = (line.next_xid(), call::plain_security());
        let (program, ident) = (callback.program, callback.ident);
        let security = &security;
        let address = Address { xid, minor: 0, program, security, sequence: None, ident };
        self.send(&mut book, now, &line, (&address, effect))
    }

    fn send(
        &self,
        book: &mut Book,
        now: Duration,
        line: &Backchannel,
        (address, effect): (&Address<'_>, &Effect),
    ) -> Result<(), NoWay> {
        if matches!(effect, Effect::Probe { .. }) && !book.may_probe(client_of(effect).id()) {
            return Ok(());
        }
        let plan = self.exports.current();
        let fh = object(&plan, effect);
        let sequence = address.sequence;
        if line.send(&call::record(address, effect, &fh)).is_err() {
            book.over(effect);
            sequence.into_iter().for_each(|sequence| book.routes.release(sequence, false));
            return Err(NoWay::Closed);
        }
        let lease = self.engine.settings().lease;
        let until = now + Duration::from_secs(CALLBACK_SECONDS).min(lease / 3);
        let said = Said { effect: effect.clone(), sequence, until };
        book.said.insert((line.id(), address.xid), said);
        Ok(())
    }

    /// Connects to a client of minor version 0, unless a connection is being made. The probe is
    /// sent when the client is connected.
    fn dial(self: &Arc<Self>, now: Duration, client: &Arc<Client>, probe: Effect) {
        let address = client.callback_address().as_ref().and_then(address::socket);
        // A connection to the client would be plain. One that came by TLS is not called over it,
        // and gets no delegations.
        let address = address.filter(|_| *client.channel() == OriginChannel::Plain);
        let Some(address) = address else { return self.engine.callbacks_fail(client) };
        if !self.book().may_dial(client.id()) {
            return;
        }
        let (this, client) = (Arc::clone(self), Arc::clone(client));
        let reached = move |line: io::Result<Arc<Backchannel>>| {
            this.dialled(now, (&client, address), &probe, line);
            if this.book().dialling.remove(&client.id()) == Some(true) {
                this.dial(now, &client, probe);
            }
        };
        (self.dial)(address, Box::new(reached));
    }

    fn dialled(
        &self,
        now: Duration,
        (client, address): (&Arc<Client>, SocketAddr),
        probe: &Effect,
        line: io::Result<Arc<Backchannel>>,
    ) {
        match line {
            Ok(line) => {
                self.book().routes.keep_dialled(client.id(), address, &line);
                if self.say_to_dialled(now, client, probe).is_err() {
                    self.engine.callbacks_fail(client);
                }
            }
            Err(error) => {
                tracing::info!(client = %client.id(), %address, %error, "no way back to a client");
                self.engine.callbacks_fail(client);
            }
        }
    }

    fn answered(self: &Arc<Self>, now: Duration, effect: &Effect, answer: &Answer) {
        match effect {
            Effect::Probe { client } => {
                self.engine.callbacks_work(client);
                self.say_again(now, client);
            }
            // If the reply that grants the delegation is still on its way, the client does not know
            // the delegation yet. A delegation that was returned meanwhile is not recalled again.
            Effect::Recall { .. } if answer.status != 0 => self.book().later(now, effect),
            Effect::RecallLayout { client, stateid, .. }
                if answer.status == Nfsstat4::NoMatchingLayout as u32 =>
            {
                self.engine.layout_forgotten(now, client, stateid);
            }
            Effect::RecallLayout { .. } if answer.status != 0 => self.book().later(now, effect),
            Effect::GetAttr { client, file } => {
                self.engine.writer_attributes(now, client, file, answer.attributes);
            }
            // The client received the call out of sequence, or had no memory for it, so it is sent
            // again.
            Effect::Offload { .. } if is_unheard(answer) => self.book().later(now, effect),
            Effect::Offload { client, stateid, .. } => self.engine.forget_offload(client, stateid),
            Effect::RecallSlot { session, target, .. } if answer.status == 0 => {
                self.engine.slots_recalled(session, *target);
            }
            Effect::Notify { client, stateid, directory, .. } => {
                let is_applied = answer.status == 0;
                self.engine.notices_answered(now, client, (directory, stateid), is_applied);
                self.pump(now);
            }
            Effect::Recall { .. }
            | Effect::RecallLayout { .. }
            | Effect::NotifyLock { .. }
            | Effect::RecallAny { .. }
            | Effect::RecallSlot { .. } => {}
        }
    }

    /// Notes that a message could not be sent, or was not answered. The messages that wait behind
    /// it fail, too.
    fn failed(&self, now: Duration, effect: &Effect) {
        let client = client_of(effect);
        self.engine.callbacks_fail(client);
        let waiting = self.book().waiting.remove(&client.id()).unwrap_or_default();
        for effect in std::iter::once(effect).chain(&waiting) {
            match effect {
                Effect::GetAttr { client, file } => {
                    self.engine.writer_attributes(now, client, file, None);
                }
                Effect::Notify { client, stateid, directory, .. } => {
                    self.engine.notices_answered(now, client, (directory, stateid), false);
                }
                _ => self.book().later(now, effect),
            }
        }
    }

    /// Sends the callbacks that wait for a free slot, as many as slots are free.
    fn say_waiting(self: &Arc<Self>, now: Duration, client: ClientId) {
        let next = || self.book().next(client);
        while let Some(effect) = next() {
            if self.say(now, effect).is_err() {
                return;
            }
        }
    }

    /// Sends the recalls and the CB_OFFLOADs of a client again, except those that are under way.
    fn say_again(self: &Arc<Self>, now: Duration, client: &Arc<Client>) {
        self.say_waiting(now, client.id());
        let mut effects = self.engine.recalls(client);
        effects.append(&mut self.engine.layout_recalls(client));
        effects.append(&mut self.engine.offloads(now, client));
        let told = self.book().told(client.id());
        effects.retain(|effect| state_of(effect).is_some_and(|stateid| !told.contains(stateid)));
        let mut effects = effects.into_iter();
        let stopped = effects.find_map(|effect| self.say(now, effect).err());
        if stopped == Some(NoWay::Busy) {
            effects.for_each(|effect| self.book().wait(&effect));
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn later(&mut self, now: Duration, effect: &Effect) {
        if let Effect::Recall { client, .. }
        | Effect::RecallLayout { client, .. }
        | Effect::Offload { client, .. } = effect
        {
            let at = now + Duration::from_secs(CALLBACK_RETRY_SECONDS);
            self.unsaid.entry(client.id()).or_insert_with(|| (at, Arc::clone(client)));
        }
    }

    /// Queues a message until a slot is free. A message that the client also receives in another
    /// way is dropped.
    fn wait(&mut self, effect: &Effect) {
        if !matches!(effect, Effect::RecallAny { .. } | Effect::RecallSlot { .. }) {
            self.waiting.entry(client_of(effect).id()).or_default().push_back(effect.clone());
        }
    }

    /// Removes and returns the oldest queued message.
    fn next(&mut self, client: ClientId) -> Option<Effect> {
        let waiting = self.waiting.get_mut(&client)?;
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&client);
        }
        next
    }

    fn due(&mut self, now: Duration) -> Vec<Arc<Client>> {
        let due = self.unsaid.extract_if(|_, (at, _)| *at <= now);
        due.map(|(_, (_, client))| client).collect()
    }

    fn overdue(&mut self, now: Duration) -> Vec<Said> {
        let over: Vec<_> = self.said.extract_if(|_, said| said.until <= now).collect();
        for (_, said) in &over {
            self.over(&said.effect);
            said.sequence.into_iter().for_each(|sequence| self.routes.release(sequence, false));
        }
        over.into_iter().map(|(_, said)| said).collect()
    }

    /// Returns whether to connect to a client now. If a connection is being made, another one is
    /// made after it, because the client may have a new address.
    fn may_dial(&mut self, client: ClientId) -> bool {
        match self.dialling.get_mut(&client) {
            Some(again) => {
                *again = true;
                false
            }
            None => {
                self.dialling.insert(client, false);
                true
            }
        }
    }

    /// Counts a probe; returns false if the client has too many unanswered ones.
    fn may_probe(&mut self, client: ClientId) -> bool {
        let probes = self.probes.entry(client).or_default();
        let may = *probes < PROBES_MAX;
        *probes += u32::from(may);
        may
    }

    /// Notes the end of a call, with or without a reply.
    fn over(&mut self, effect: &Effect) {
        let Effect::Probe { client } = effect else { return };
        if let Some(probes) = self.probes.get_mut(&client.id()) {
            *probes = probes.saturating_sub(1);
            if *probes == 0 {
                self.probes.remove(&client.id());
            }
        }
    }

    /// Returns the states about which calls to a client are under way or queued.
    fn told(&self, client: ClientId) -> HashSet<Stateid> {
        let said = self.said.values().map(|said| &said.effect);
        let said = said.filter(|effect| client_of(effect).id() == client);
        let waiting = self.waiting.get(&client).into_iter().flatten();
        said.chain(waiting).filter_map(state_of).copied().collect()
    }
}

/// Returns whether the sequenceid of a slot was used: the client executed the call, or says that it
/// did before.
fn is_used(answer: &Answer) -> bool {
    let before = [Nfsstat4::SeqFalseRetry, Nfsstat4::RetryUncachedRep, Nfsstat4::SeqMisordered];
    answer.sequenced || before.iter().any(|status| *status as u32 == answer.status)
}

/// Returns whether the client did not execute a call, and may execute it if it is sent again.
const fn is_unheard(answer: &Answer) -> bool {
    !answer.sequenced || answer.status == Nfsstat4::Delay as u32
}

const fn client_of(effect: &Effect) -> &Arc<Client> {
    match effect {
        Effect::Recall { client, .. }
        | Effect::RecallLayout { client, .. }
        | Effect::NotifyLock { client, .. }
        | Effect::GetAttr { client, .. }
        | Effect::Notify { client, .. }
        | Effect::RecallAny { client, .. }
        | Effect::RecallSlot { client, .. }
        | Effect::Offload { client, .. }
        | Effect::Probe { client } => client,
    }
}

/// Returns the part of a call that depends on the plan: the handle of its file, or the arguments of
/// CB_NOTIFY or CB_LAYOUTRECALL.
fn object(plan: &Plan, effect: &Effect) -> Vec<u8> {
    if let Effect::Notify { stateid, directory, wishes, batch, .. } = effect {
        return notify::arguments(plan, (directory, stateid), wishes, batch);
    }
    if let Effect::RecallLayout { stateid, file, .. } = effect {
        return layout_recall::arguments(plan, file, stateid);
    }
    file_of(effect).map_or_else(Vec::new, |file| plan.seal_key(file).bytes().to_vec())
}

const fn file_of(effect: &Effect) -> Option<&FileKey> {
    match effect {
        Effect::Recall { file, .. }
        | Effect::RecallLayout { file, .. }
        | Effect::NotifyLock { file, .. }
        | Effect::Offload { file, .. }
        | Effect::GetAttr { file, .. }
        | Effect::Notify { directory: file, .. } => Some(file),
        Effect::RecallAny { .. } | Effect::RecallSlot { .. } | Effect::Probe { .. } => None,
    }
}

/// Returns the state of a message that is sent again until the client has answered it.
const fn state_of(effect: &Effect) -> Option<&Stateid> {
    match effect {
        Effect::Recall { stateid, .. }
        | Effect::RecallLayout { stateid, .. }
        | Effect::Offload { stateid, .. } => Some(stateid),
        _ => None,
    }
}

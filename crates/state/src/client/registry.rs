use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::foreign_ids::ForeignIds;
use super::peer::{Peer, Peers};
use super::{Client, NewClient};
use crate::id_hasher::BuildIdHasher;
use crate::limits::REFUSAL;
use crate::memory_pool::Pool;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::table::{Table, lock};
use crate::{
    Caller, ClientId, ClientProtocol, Error, Origin, OriginChannel, RecordedClient, Result, Secret,
};

/// All clients, by clientid and by name. The lock of the names is the outermost of all locks; it is
/// taken only when clients are created, confirmed or forgotten.
pub(crate) struct Clients {
    boot: u32,
    secret: Secret,
    by_id: Table<Client, BuildIdHasher>,
    foreign: ForeignIds,
    by_name: Mutex<Names>,
    next: AtomicU32,
    /// Number of clients whose numbers another engine has gone on with so far.
    departed: AtomicU32,
}

/// Clients by name, and the number of clients by origin.
#[derive(Default)]
pub(crate) struct Names {
    /// The clients by the bytes of [`RecordedClient::key`], which take less memory.
    named: HashMap<Box<[u8]>, Named>,
    peers: Peers,
}

/// The clients of one name: at most one is confirmed. The others, at most one for each caller, wait
/// for their confirmation and would then replace it.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) confirmed: Option<Arc<Client>>,
    unconfirmed: Vec<Arc<Client>>,
}

/// A client with the clientid that it had in another engine.
pub(crate) struct Adopted {
    pub(crate) client: Arc<Client>,
    /// The clientid of another engine that had the same number, and whose client is gone.
    replaced: Option<ClientId>,
}

impl Names {
    /// Returns the confirmed client of this name.
    pub(crate) fn confirmed(&self, name: &RecordedClient) -> Option<&Arc<Client>> {
        self.named.get(&name.key())?.confirmed.as_ref()
    }

    /// Returns the unconfirmed client that a caller introduced under this name.
    pub(crate) fn unconfirmed(
        &self,
        name: &RecordedClient,
        caller: Caller,
    ) -> Option<&Arc<Client>> {
        let named = self.named.get(&name.key())?;
        named.unconfirmed.iter().find(|client| client.introducer() == caller)
    }

    /// Returns the unconfirmed clients that are the same instance as this one: they have its name,
    /// its verifier and its principal.
    pub(crate) fn unconfirmed_instances(&self, client: &Client) -> Vec<Arc<Client>> {
        let named = self.named.get(&client.recorded().key());
        let unconfirmed = named.into_iter().flat_map(|named| &named.unconfirmed);
        let is_it = |it: &&Arc<Client>| {
            it.verifier == client.verifier
                && it.introducer().principal == client.introducer().principal
        };
        unconfirmed.filter(is_it).cloned().collect()
    }

    /// Returns the host of NLM with this name.
    pub(crate) fn host(&self, name: &[u8]) -> Option<Arc<Client>> {
        let (protocol, channel, id) = (ClientProtocol::Nlm, OriginChannel::Plain, name.into());
        self.confirmed(&RecordedClient { protocol, channel, id }).cloned()
    }

    /// Adds a client that is not confirmed yet.
    fn add(&mut self, client: &Arc<Client>) {
        self.named.entry(client.recorded().key()).or_default().unconfirmed.push(Arc::clone(client));
    }

    /// Confirms a client under its name; returns the client that it replaces.
    pub(crate) fn confirm(&mut self, client: &Arc<Client>) -> Option<Arc<Client>> {
        let named = self.named.entry(client.recorded().key()).or_default();
        named.unconfirmed.retain(|other| !super::same(other, client));
        named.confirmed.replace(Arc::clone(client)).filter(|old| !super::same(old, client))
    }

    fn remove(&mut self, client: &Arc<Client>) {
        self.peers.leave(client.introducer().origin);
        let name = client.recorded().key();
        let Some(named) = self.named.get_mut(&name) else { return };
        named.unconfirmed.retain(|other| !super::same(other, client));
        named.confirmed.take_if(|other| super::same(other, client));
        if named.confirmed.is_none() && named.unconfirmed.is_empty() {
            self.named.remove(&name);
        }
    }

    /// Returns whether a client of this origin was refused a moment ago because no other could be
    /// evicted.
    pub(crate) fn was_refused(&self, origin: Origin, now: Duration) -> bool {
        now < self.peers.refused_until(origin)
    }

    /// Notes that no client could be evicted for a new one of this origin.
    pub(crate) fn refuse(&mut self, origin: Origin, now: Duration) {
        self.peers.refuse(origin, now.saturating_add(REFUSAL));
    }

    /// Returns the number of clients from an origin.
    pub(crate) fn clients_from(&self, origin: Origin) -> usize {
        self.peers.clients_from(origin)
    }
}

impl Clients {
    pub(crate) fn new(secret: Secret, boot: u32) -> Self {
        let (by_id, by_name, foreign) = (Table::new(), Mutex::default(), ForeignIds::default());
        let (next, departed) = (AtomicU32::new(1), AtomicU32::new(0));
        Self { boot, secret, by_id, foreign, by_name, next, departed }
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        lock(&self.by_name)
    }

    pub(crate) fn get(&self, id: ClientId) -> Option<Arc<Client>> {
        self.by_id.get(&id)
    }

    /// Returns all clients in the order in which they were created, so that loops over them are
    /// deterministic.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        let mut all = self.by_id.all();
        all.sort_unstable_by_key(|client| client.serial);
        all
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns all clients that were created after the one with this clientid, in order. That
    /// client need not exist any more. Zero returns all clients.
    pub(crate) fn after(&self, id: ClientId) -> Vec<Arc<Client>> {
        let serial = match id.number() {
            0 => 0,
            number => self.secret.restored(number),
        };
        let mut clients = self.all();
        clients.retain(|client| client.serial > serial);
        clients
    }

    /// Returns the clientid of the client that has this number, or zero.
    pub(crate) fn id(&self, number: u32) -> ClientId {
        let own = || ClientId::new(&self.secret, self.boot, number);
        self.foreign.get(number).unwrap_or_else(own)
    }

    /// Returns whether a clientid was given out in this life of the server, or was imported in it.
    pub(crate) fn gave_out(&self, id: ClientId) -> bool {
        self.is_own(id) || self.foreign.get(id.number()) == Some(id)
    }

    fn is_own(&self, id: ClientId) -> bool {
        id.is_of(&self.secret, self.boot)
    }

    /// Makes an unconfirmed client with a new clientid.
    pub(crate) fn introduce(
        &self,
        now: Duration,
        names: &mut Names,
        birth: NewClient,
        held: &Arc<Pool>,
    ) -> Arc<Client> {
        let peer: Peer = names.peers.enter(birth.caller.origin);
        let (serial, number) = self.next_number();
        let client = Arc::new(Client::new(now, (serial, self.id(number)), birth, (held, peer)));
        self.by_id.insert(Arc::clone(&client));
        names.add(&client);
        client
    }

    /// Makes an unconfirmed client with the clientid that it had in another engine. The number of a
    /// clientid must be unique, too, because lock-owners are known by it.
    ///
    /// # Errors
    /// [`Error::Inval`]: no server gives out such a clientid. [`Error::ClidInuse`]: another client
    /// has it, or has its number.
    pub(crate) fn adopt(
        &self,
        now: Duration,
        names: &mut Names,
        (id, new): (ClientId, NewClient),
        held: &Arc<Pool>,
    ) -> Result<Adopted> {
        let number = id.number();
        if number == 0 || id.0 == u64::MAX {
            return Err(Error::Inval);
        }
        if self.by_id.get(&self.id(number)).is_some() {
            return Err(Error::ClidInuse);
        }
        let replaced =
            if self.is_own(id) { self.foreign.forget(number) } else { self.foreign.add(id) };
        let peer: Peer = names.peers.enter(new.caller.origin);
        let serial = self.secret.restored(number);
        let client = Arc::new(Client::new(now, (serial, id), new, (held, peer)));
        self.by_id.insert(Arc::clone(&client));
        names.add(&client);
        Ok(Adopted { client, replaced })
    }

    /// Returns a number after which the states of a client are numbered when another engine goes on
    /// with its numbers. It differs each time, and in each engine, so that engines that give
    /// stateids under one clientid hardly ever give the same.
    pub(crate) fn random_start_number(&self) -> u32 {
        let departed = self.departed.fetch_add(1, Ordering::Relaxed);
        self.secret.word(b"state numbers", departed.into()) as u32
    }

    /// Returns the number of clientids that were given out so far.
    pub(crate) fn given_out(&self) -> u32 {
        self.next.load(Ordering::Relaxed).wrapping_sub(1)
    }

    /// Skips the first `count` clientids if the engine that gave out this one has given out all of
    /// them, and has the secret and the boot number of this engine.
    pub(crate) fn pass_over(&self, id: ClientId, count: u32) {
        if self.is_own(id) {
            self.next.fetch_max(count.saturating_add(1), Ordering::Relaxed);
        }
    }

    /// Forgets a client that was not imported after all. Afterwards the same is known of the number
    /// of its clientid as before.
    pub(crate) fn disown(&self, names: &mut Names, Adopted { client, replaced }: &Adopted) {
        self.remove(names, client);
        match replaced {
            Some(before) => self.foreign.add(*before),
            None => self.foreign.forget(client.id.number()),
        };
    }

    /// Draws a number that no client has; returns the serial number and the drawn number. A number
    /// is repeated only after all numbers were drawn. Zero is no client's number.
    fn next_number(&self) -> (u32, u32) {
        loop {
            let serial = self.next.fetch_add(1, Ordering::Relaxed);
            let number = self.secret.permuted(serial);
            let is_foreign = self.foreign.get(number).is_some();
            if number != 0 && !is_foreign && self.by_id.get(&self.id(number)).is_none() {
                return (serial, number);
            }
        }
    }

    pub(crate) fn remove(&self, names: &mut Names, client: &Arc<Client>) {
        self.by_id.remove(&client.id);
        self.foreign.release(client.id);
        names.remove(client);
    }
}

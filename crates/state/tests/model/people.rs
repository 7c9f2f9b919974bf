//! The engine and the model, and the clients that use both.

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    ByteRange, Caller, Claim, Client, ClientOwner, ConnectionId, Delegation, DelegationWish,
    Effect, Engine, Error, ExchangeId, ExportedClient, ExportedKind, ExportedState, FileKey, Lock,
    LockRefusal, LockType, Locker, Open, Origin, Principal, Record, Recovered, Sender, Settings,
    Share, Stateid, Verifier,
};
use comity_vfs::Handle;

use crate::introduction::session_of;
use crate::reference::{LEASE_SECONDS, Reference};
use crate::step::{CLIENTS, FILES, Step};

/// The state of a file that a client believes it has.
#[derive(Debug, Clone, Copy, Default)]
struct Believed {
    open: Option<Stateid>,
    lock: Option<Stateid>,
    delegation: Option<Stateid>,
}

pub(super) struct Both {
    engine: Engine,
    model: Reference,
    now: Duration,
    boot: u32,
    lives: [u8; CLIENTS],
    believed: [[Believed; FILES]; CLIENTS],
    clients: Vec<Option<Arc<Client>>>,
    store: Recovered,
}

impl Both {
    pub(super) fn new() -> Self {
        let now = Duration::from_secs(1);
        let mut both = Self {
            engine: Engine::new(now, settings(1), Recovered::new()),
            model: Reference::default(),
            now,
            boot: 1,
            lives: [0; CLIENTS],
            believed: Default::default(),
            clients: vec![None; CLIENTS],
            store: Recovered::new(),
        };
        (0..CLIENTS).for_each(|client| both.arrive(client));
        both.settle();
        both
    }

    pub(super) fn perform(&mut self, step: &Step) {
        match *step {
            Step::Open { client, file, access, deny } => self.open(client, file, access, deny),
            Step::Close { client, file } => self.close(client, file),
            Step::Lock { client, file, first, last, write } => {
                self.lock(client, file, (first, last), write);
            }
            Step::Unlock { client, file, first, last } => self.unlock(client, file, (first, last)),
            Step::Return { client, file } => self.give_back(client, file),
            Step::Silence { client, seconds } => self.silence(client, seconds),
            Step::Reboot { client } => self.reboot(client),
            Step::Migrate => self.migrate(),
            Step::Restart => self.restart(),
        }
        self.settle();
    }

    /// Evicts all clients, and asserts that the engine then has no state.
    pub(super) fn end(&mut self) {
        for client in self.clients.iter().flatten() {
            self.engine.evict(self.now, client);
        }
        self.now += Duration::from_secs(1000);
        self.engine.tick(self.now);
        let census = self.engine.census();
        let left = (census.clients, census.sessions, census.files, census.states);
        assert_eq!(left, (0, 0, 0, 0), "{census:?}");
        let left = (census.delegations, census.reply_cache_bytes, census.held_bytes);
        assert_eq!(left, (0, 0, 0), "{census:?}");
    }

    /// Returns whether the client could reclaim something if the server were killed now.
    pub(super) fn may_reclaim(&self, client: usize) -> bool {
        let named = |record: Record| match record {
            Record::Client(known, _) => *known.id == [client as u8],
            _ => false,
        };
        self.store.records().any(named)
    }

    /// Stores the records that must be stored, and lets clients return recalled delegations.
    fn settle(&mut self) {
        let mut records = Vec::new();
        let mark = self.engine.poll_records(&mut records);
        records.into_iter().for_each(|record| self.store.apply(record));
        self.engine.stored(mark);
        while let Some(effect) = self.engine.poll_effect() {
            if let Effect::Recall { client, stateid, .. } = effect {
                self.engine.recall_sent(self.now, &client, &stateid);
            }
        }
    }

    /// Introduces a client, with a session and an end of its reclaim.
    fn arrive(&mut self, client: usize) {
        let owner =
            ClientOwner { verifier: Verifier([self.lives[client]; 8]), id: [client as u8].into() };
        let caller = caller(client);
        let args = ExchangeId { owner, caller, update: false };
        let known = self.engine.exchange_id(self.now, args).unwrap();
        let session = session_of(&known, (caller, client as u64), ATTRS);
        let session = self.engine.create_session(self.now, &session).unwrap();
        let session = self.engine.session(&session.session).unwrap();
        let known = Arc::clone(session.client());
        self.engine.callbacks_work(&known);
        self.clients[client] = Some(known);
        self.believed[client] = Default::default();
        self.model.silent_seconds[client] = 0;
    }

    /// Returns the client; one that the engine has forgotten introduces itself again.
    fn client(&mut self, client: usize) -> Arc<Client> {
        let known = self.clients[client].clone().unwrap();
        if self.engine.client_by_id(known.id()).is_some() {
            // Renews the lease, as a SEQUENCE does.
            let _ = self.engine.bind_connection(
                self.now,
                &known.sessions()[0],
                (ConnectionId(client as u64), comity_state::Direction::Both),
                caller(client),
            );
            self.model.silent_seconds[client] = 0;
            return known;
        }
        assert!(
            self.model.silent_seconds[client] >= LEASE_SECONDS || !self.model.has_any(client),
            "client {client} was forgotten though it had a lease"
        );
        self.model.forget(client);
        self.arrive(client);
        let known = self.clients[client].clone().unwrap();
        self.complete(client, &known);
        known
    }

    fn complete(&self, client: usize, known: &Arc<Client>) {
        self.engine.reclaim_complete(self.now, known, caller(client)).unwrap();
    }

    fn open(&mut self, client: usize, file: usize, access: u32, deny: u32) {
        let known = self.ready(client);
        loop {
            let share = Share { access, deny };
            let args = open_args((client, &known), file, share, Claim::New);
            match self.engine.open(self.now, &args) {
                Ok(opened) => {
                    assert!(self.model.open(client, file, access, deny), "opened, but should not");
                    self.believed[client][file].open = Some(opened.stateid);
                    if let Delegation::Granted { stateid, .. } = opened.delegation {
                        self.alone(client, file, stateid);
                    }
                    return;
                }
                Err(Error::ShareDenied) => {
                    assert!(!self.model.open(client, file, access, deny), "denied, wrongly");
                    return;
                }
                Err(Error::Delay) => self.all_give_back(file),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Asserts that a delegation conflicts with no state of other clients.
    fn alone(&mut self, client: usize, file: usize, stateid: Stateid) {
        self.believed[client][file].delegation = Some(stateid);
        let (key, now) = (key(file), self.now);
        let me = self.clients[client].clone().unwrap();
        // A read with the client's own open recalls nothing.
        let read = Share::access(Share::READ);
        assert_eq!(self.engine.break_delegations(now, Some(&me), &key, read), Ok(()));
    }

    fn all_give_back(&mut self, file: usize) {
        (0..CLIENTS).for_each(|client| self.give_back(client, file));
        self.settle();
    }

    fn give_back(&mut self, client: usize, file: usize) {
        let Some(stateid) = self.believed[client][file].delegation.take() else { return };
        let known = self.clients[client].clone().unwrap();
        if self.engine.client_by_id(known.id()).is_some() {
            let key = key(file);
            let refused = self.engine.delegreturn((self.other(client, &known), &key), &stateid);
            assert_eq!(refused, Err(Error::WrongCred));
            let shown = (self.sender(client, &known), &key);
            assert_eq!(self.engine.delegreturn(shown, &stateid), Ok(()));
        }
    }

    fn close(&mut self, client: usize, file: usize) {
        let known = self.ready(client);
        let Some(stateid) = self.believed[client][file].open.take() else { return };
        self.believed[client][file].lock = None;
        let refused = self.engine.close((self.other(client, &known), &key(file)), &stateid);
        assert_eq!(refused, Err(Error::WrongCred));
        let shown = (self.sender(client, &known), &key(file));
        assert!(self.engine.close(shown, &stateid).is_ok());
        self.model.close(client, file);
    }

    fn lock(&mut self, client: usize, file: usize, (first, last): (u64, u64), write: bool) {
        let known = self.ready(client);
        let Believed { open, lock, .. } = self.believed[client][file];
        let Some(open) = open else { return };
        let locker = match lock {
            Some(lock) => Locker::Known { lock },
            None => Locker::New { open, owner: b"locker", seqid: 0 },
        };
        let kind = if write { LockType::Write } else { LockType::Read };
        let range = ByteRange { first, last };
        let args = Lock { file: key(file), range, kind, reclaim: false, wait: false, locker };
        let refused = self.engine.lock(self.other(client, &known), &args);
        assert_eq!(refused, Err(LockRefusal::Error(Error::WrongCred)));
        let needed = if write { Share::WRITE } else { Share::READ };
        let mode = self.model.of[client][file].open.unwrap().0 & needed != 0;
        match self.engine.lock(self.sender(client, &known), &args) {
            Ok(stateid) => {
                assert!(mode && self.model.lock(client, file, (first, last), write));
                self.believed[client][file].lock = Some(stateid);
            }
            Err(LockRefusal::Denied { .. }) => {
                assert!(!self.model.lock(client, file, (first, last), write), "denied, wrongly");
            }
            Err(LockRefusal::Error(Error::Openmode)) => assert!(!mode),
            Err(LockRefusal::Error(error)) => panic!("{error}"),
        }
    }

    fn unlock(&mut self, client: usize, file: usize, (first, last): (u64, u64)) {
        let known = self.ready(client);
        let Some(lock) = self.believed[client][file].lock else { return };
        let sender = self.sender(client, &known);
        let range = ByteRange { first, last };
        let other = self.other(client, &known);
        let refused = self.engine.unlock(other, &lock, (&key(file), range));
        assert_eq!(refused, Err(Error::WrongCred));
        let left = self.engine.unlock(sender, &lock, (&key(file), range)).unwrap();
        self.believed[client][file].lock = Some(left);
        self.model.unlock(client, file, (first, last));
    }

    /// Lets time pass in steps shorter than a lease; all clients but one renew their leases.
    fn silence(&mut self, silent: usize, seconds: u64) {
        for _ in 0..seconds.div_ceil(10) {
            self.now += Duration::from_secs(10);
            self.model.silent_seconds[silent] += 10;
            (0..CLIENTS).filter(|client| *client != silent).for_each(|client| {
                self.ready(client);
            });
            self.engine.tick(self.now);
            self.settle();
        }
    }

    fn reboot(&mut self, client: usize) {
        self.lives[client] += 1;
        self.model.forget(client);
        self.arrive(client);
        let known = self.clients[client].clone().unwrap();
        self.complete(client, &known);
    }

    /// Kills the server. All clients come back, reclaim their state and end their reclaim; none
    /// gets state of another one.
    fn restart(&mut self) {
        self.settle();
        self.boot += 1;
        self.engine = Engine::new(self.now, settings(self.boot), self.store.clone());
        let before = self.believed;
        for (client, had) in before.iter().enumerate() {
            let may = self.may_reclaim(client);
            assert!(may || !self.model.has_any(client) || self.was_lost(client));
            if !may {
                self.model.forget(client);
            }
            self.arrive(client);
            let known = self.clients[client].clone().unwrap();
            for (file, believed) in had.iter().enumerate() {
                self.reclaim(&known, client, file, *believed, may);
            }
        }
        for (client, known) in self.clients.clone().into_iter().flatten().enumerate() {
            self.complete(client, &known);
        }
        assert!(!self.engine.is_in_grace(), "all are back");
    }

    /// Migrates all clients to a new engine, where their stateids and sessions can be used.
    fn migrate(&mut self) {
        let next = Engine::new(self.now, settings(self.boot), Recovered::new());
        for known in &mut self.clients {
            let Some(old) = known.as_ref() else { continue };
            // A forgotten client has no state to migrate.
            let Ok(exported) = self.engine.export_client(self.now, old) else { continue };
            let new = next.import_client(self.now, &exported).unwrap();
            assert_eq!(next.export_client(self.now, &new).as_ref(), Ok(&exported));
            let again = next.import_client(self.now, &exported).map(drop);
            let in_use = holds(&exported) && exported.silent < next.settings().lease;
            assert_eq!(again, if in_use { Err(Error::ClidInuse) } else { Ok(()) });
            let new = next.client_by_id(exported.id).unwrap();
            assert_eq!(next.export_client(self.now, &new).as_ref(), Ok(&exported));
            next.callbacks_work(&new);
            *known = Some(new);
        }
        let (before, after) = (self.engine.census(), next.census());
        assert_eq!((before.opens, before.locks), (after.opens, after.locks));
        assert_eq!((before.states, before.owners), (after.states, after.owners));
        assert_eq!((before.delegations, before.sessions), (after.delegations, after.sessions));
        assert_eq!(before.held_bytes, after.held_bytes);
        assert_eq!(before.reply_cache_bytes, after.reply_cache_bytes);
        self.engine = next;
    }

    fn was_lost(&self, client: usize) -> bool {
        self.model.silent_seconds[client] >= LEASE_SECONDS
    }

    fn reclaim(
        &mut self,
        known: &Arc<Client>,
        client: usize,
        file: usize,
        before: Believed,
        may: bool,
    ) {
        if before.open.is_none() {
            return;
        }
        let (access, deny) = self.model.of[client][file].open.unwrap_or((1, 0));
        let args = open_args((client, known), file, Share { access, deny }, Claim::Previous(None));
        let opened = self.engine.open(self.now, &args);
        assert_eq!(opened.is_ok(), may, "{opened:?}");
        let Ok(opened) = opened else { return };
        self.believed[client][file].open = Some(opened.stateid);
        let bytes = self.model.of[client][file].bytes;
        for (at, write) in bytes.iter().enumerate() {
            let Some(write) = write else { continue };
            let kind = if *write { LockType::Write } else { LockType::Read };
            let range = ByteRange { first: at as u64, last: at as u64 };
            let locker = match self.believed[client][file].lock {
                Some(lock) => Locker::Known { lock },
                None => Locker::New { open: opened.stateid, owner: b"locker", seqid: 0 },
            };
            let args = Lock { file: key(file), range, kind, reclaim: true, wait: false, locker };
            let sender = self.sender(client, known);
            let lock = self.engine.lock(sender, &args).unwrap();
            self.believed[client][file].lock = Some(lock);
        }
    }

    fn sender<'c>(&self, client: usize, known: &'c Arc<Client>) -> Sender<'c> {
        Sender { now: self.now, client: Some(known), caller: caller(client) }
    }

    /// Another user of the client's machine, who uses the client's stateids.
    fn other<'c>(&self, client: usize, known: &'c Arc<Client>) -> Sender<'c> {
        let caller = Caller { principal: Principal(1), ..caller(client) };
        Sender { caller, ..self.sender(client, known) }
    }

    /// The client, after the end of its reclaim.
    fn ready(&mut self, client: usize) -> Arc<Client> {
        let known = self.client(client);
        let _ = self.engine.reclaim_complete(self.now, &known, caller(client));
        known
    }
}

const ATTRS: comity_state::ChannelAttrs = comity_state::ChannelAttrs {
    request_bytes_max: 4096,
    response_bytes_max: 4096,
    response_cached_bytes_max: 1024,
    operations_max: 8,
    requests_max: 2,
};

fn settings(boot: u32) -> Settings {
    let mut settings = Settings::new(boot, [7; 16]);
    settings.durable = true;
    settings.courtesy = Duration::from_secs(300);
    settings
}

/// Each client is on a machine of its own.
fn caller(client: usize) -> Caller {
    Caller { principal: Principal(0), origin: Origin::from_bytes([client as u8; 16]) }
}

fn key(file: usize) -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[file as u8]).unwrap() }
}

fn open_args(
    (client, known): (usize, &Arc<Client>),
    file: usize,
    share: Share,
    claim: Claim,
) -> Open<'_> {
    Open {
        client: known,
        caller: caller(client),
        owner: b"opener",
        file: key(file),
        share,
        claim,
        wish: DelegationWish::NoPreference,
        user: None,
        grantee: None,
        empties: false,
    }
}

/// Returns whether a client has more than closed opens.
fn holds(exported: &ExportedClient) -> bool {
    let is_closed = |it: &ExportedState| matches!(it.kind, ExportedKind::Open { closed: true, .. });
    !exported.states.iter().all(is_closed)
}

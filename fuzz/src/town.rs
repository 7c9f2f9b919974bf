//! A whole server in one process, and three clients that the bytes of an input control. It includes
//! the server's clock, its storage, its restarts, and its callbacks over the clients' connections.

mod operations;
mod people;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use comity_export::{Exports, RpcPeer, Source};
use comity_nfs4::{Callbacks, Clock, Dialed, Nfs4, ServerIdentity, Versions};
use comity_rpc::{Answered, Backchannel, Dispatcher, Program};
use comity_state::{ClientId, Engine, JournalPosition, Limits, Recovered, Settings};
use comity_xdr::Encoder;

use self::people::{PEOPLE, Person};
use crate::{PEER, assert_one_reply};

/// Length of a lease.
const LEASE: Duration = Duration::from_secs(90);

/// A bound small enough for inputs to reach.
const LIMITS: Limits = Limits {
    clients: 6,
    sessions_per_client: 3,
    slots_per_session: 8,
    reply_cache_bytes: 1 << 20,
    held_bytes: 1 << 15,
    states_per_client: 12,
    owners_per_client: 12,
    locks_per_file: 24,
    delegations: 4,
    locked_files: 4,
    offloads_per_client: 2,
};

/// Files with which clients work: `/export/a` and so on.
const FILES: [&[u8]; 3] = [b"a", b"b", b"c"];

/// The bytes of an input, one after the other; zeros after its end.
pub(crate) struct Bytes<'i>(pub(crate) &'i [u8]);

impl<'i> Bytes<'i> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.next()) % end
    }

    fn flag(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// Returns as many bytes as the next byte says.
    pub(crate) fn some(&mut self) -> &'i [u8] {
        let length = usize::from(self.next()).min(self.0.len());
        let (some, rest) = self.0.split_at(length);
        self.0 = rest;
        some
    }
}

/// The server and its clients.
pub struct Town {
    exports: Arc<Exports>,
    store: Arc<Mutex<Recovered>>,
    engine: Arc<Engine>,
    callbacks: Arc<Callbacks>,
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    /// The callback address of clients without sessions.
    lines: Arc<Mutex<Vec<Arc<Backchannel>>>>,
    people: Vec<Person>,
    /// The server's time since its start.
    age: Duration,
    boot: u32,
    xid: u32,
}

impl Town {
    /// A server that has never run.
    ///
    /// # Panics
    /// If there can be none.
    #[must_use]
    pub fn new() -> Self {
        let text = b"/export *(rw,insecure,no_root_squash)\n".to_vec();
        let (plan, _) = crate::plan(Source::Text { name: "fuzz".into(), text }).expect("a plan");
        let (exports, lines) = (Arc::new(Exports::new(plan)), Arc::<Mutex<_>>::default());
        let age = Duration::from_secs(1000);
        let engine = Arc::new(Engine::new(age, settings(1), Recovered::new()));
        let callbacks = callbacks(&engine, &exports, &lines);
        let mut town = Self {
            dispatcher: Dispatcher::new(Vec::new(), Arc::clone(&exports)),
            exports,
            store: Arc::default(),
            engine,
            callbacks,
            lines,
            people: Vec::new(),
            age,
            boot: 1,
            xid: 0,
        };
        town.serve();
        (0..PEOPLE).for_each(|_| town.furnish());
        town
    }

    /// Runs the steps that an input describes.
    pub fn live(&mut self, input: &[u8]) {
        let mut bytes = Bytes(input);
        while !bytes.is_empty() {
            let who = bytes.below(PEOPLE);
            match bytes.below(32) {
                0 => self.let_pass(Duration::from_secs(u64::from(bytes.next()))),
                1 => self.let_pass(Duration::from_secs(u64::from(bytes.next() % 8))),
                2 => self.restart(),
                3 => self.people[who].reboot(),
                4 => self.evict(who),
                5..=9 => self.answer(who, &mut bytes),
                10 => self.hear(who, bytes.some()),
                _ => self.ask(who, &mut bytes),
            }
            self.callbacks.pump(self.age);
            self.assert_bounded();
        }
    }

    /// Ends all clients, and checks that no state of them is left.
    pub fn end(mut self) {
        for summary in self.engine.clients_after(self.age, ClientId(0), LIMITS.clients) {
            self.engine.evict(self.age, &summary.client);
        }
        // The grace period, and the time for which a recalled file is not delegated again.
        (0..8).for_each(|_| self.let_pass(LEASE));
        let census = self.engine.census();
        let left = (census.clients, census.sessions, census.files, census.states, census.owners);
        assert_eq!(left, (0, 0, 0, 0, 0), "{census:?}");
        let left = (census.locks, census.waits, census.delegations, census.reply_cache_bytes);
        assert_eq!(left, (0, 0, 0, 0), "{census:?}");
        assert_eq!(census.held_bytes, 0, "{census:?}");
    }

    /// Starts the server, again after a restart or when its clock is replaced.
    fn serve(&mut self) {
        let clock = Clock::begun(self.age);
        let (engine, store) = (Arc::clone(&self.engine), Arc::clone(&self.store));
        let settle = move |_: JournalPosition| {
            let mut records = Vec::new();
            let position = engine.poll_records(&mut records);
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            records.into_iter().for_each(|record| store.apply(record));
            engine.stored(position);
            true
        };
        let memory = comity_nfs4::Memory {
            engine: Arc::clone(&self.engine),
            clock,
            identity: ServerIdentity::alone(b"fuzz"),
            callbacks: Some(Arc::clone(&self.callbacks)),
            settle: Some(Arc::new(settle)),
            pause: None,
            locals: None,
            copier: None,
        };
        let nfs = Nfs4::new(Arc::clone(&self.exports), [1; 8], Versions::ALL, memory);
        let nfs: Arc<dyn Program<RpcPeer>> = Arc::new(nfs);
        self.dispatcher = Dispatcher::new(vec![nfs], Arc::clone(&self.exports));
    }

    /// Makes one more client, with a connection.
    fn furnish(&mut self) {
        let line = Arc::new(Backchannel::new(|| {}));
        let number = self.people.len();
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&line));
        self.people.push(Person::new(number, line));
    }

    fn let_pass(&mut self, time: Duration) {
        self.age += time;
        self.serve();
        self.engine.tick(self.age);
        self.callbacks.tick(self.age);
    }

    /// The server is killed, and begins again with what it has stored.
    fn restart(&mut self) {
        self.boot += 1;
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.engine = Arc::new(Engine::new(self.age, settings(self.boot), store));
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.callbacks = callbacks(&self.engine, &self.exports, &self.lines);
        for person in &mut self.people {
            person.line.close();
            person.reconnect();
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push(Arc::clone(&person.line));
        }
        self.serve();
    }

    fn evict(&mut self, who: usize) {
        let id = ClientId(self.people[who].clientid);
        if let Some(client) = self.engine.client_by_id(id) {
            self.engine.evict(self.age, &client);
        }
    }

    /// A client sends a record that is not a call.
    fn hear(&self, who: usize, record: &[u8]) {
        self.callbacks.heard(self.age, self.people[who].line.id(), record);
    }

    /// Makes a call; gives the whole reply.
    fn call(&mut self, who: usize, record: &[u8]) -> Vec<u8> {
        let mut replies = Encoder::new();
        let visitor = &self.people[who].visitor;
        match self.dispatcher.answer(record, PEER.ip(), visitor, &mut replies) {
            Ok(Answered::Later(late)) => drop(late.finish(&mut replies)),
            Ok(Answered::Now) => {}
            Ok(Answered::Refused(why)) => panic!("a listed peer is refused: {why:?}"),
            Ok(Answered::Never | Answered::Undecided) => panic!("a call without an answer"),
            Ok(Answered::StartTls) => panic!("TLS that was not offered"),
            Err(hangup) => panic!("a call that is none: {hangup}"),
        }
        assert_one_reply(record, &replies);
        replies.bytes().to_vec()
    }

    fn assert_bounded(&self) {
        let census = self.engine.census();
        assert!(census.clients <= LIMITS.clients, "{census:?}");
        assert!(census.sessions <= LIMITS.clients * LIMITS.sessions_per_client, "{census:?}");
        assert!(census.states <= LIMITS.clients * LIMITS.states_per_client, "{census:?}");
        assert!(census.owners <= LIMITS.clients * LIMITS.owners_per_client, "{census:?}");
        assert!(census.delegations <= LIMITS.delegations, "{census:?}");
        assert!(census.reply_cache_bytes <= LIMITS.reply_cache_bytes, "{census:?}");
        assert!(census.held_bytes <= LIMITS.held_bytes, "{census:?}");
        // A split may exceed the limit, by one range for each range that is counted.
        assert!(census.locks + census.waits <= FILES.len() * LIMITS.locks_per_file * 2);
    }
}

impl Default for Town {
    fn default() -> Self {
        Self::new()
    }
}

fn settings(boot: u32) -> Settings {
    let usual = Settings::new(boot, [7; 16]);
    Settings { lease: LEASE, grace: LEASE, durable: true, limits: LIMITS, ..usual }
}

/// The dialled port tells which client is called.
fn callbacks(
    engine: &Arc<Engine>,
    exports: &Arc<Exports>,
    lines: &Arc<Mutex<Vec<Arc<Backchannel>>>>,
) -> Arc<Callbacks> {
    let lines = Arc::clone(lines);
    let dial = move |address: SocketAddr, dialed: Dialed| {
        let line = Arc::new(Backchannel::new(|| {}));
        let at = usize::from(address.port()).saturating_sub(1);
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = lines.get_mut(at) else {
            drop(lines);
            return dialed(Err(std::io::ErrorKind::NotFound.into()));
        };
        *place = Arc::clone(&line);
        drop(lines);
        dialed(Ok(line));
    };
    let (engine, exports) = (Arc::clone(engine), Arc::clone(exports));
    Arc::new(Callbacks::new(engine, exports, Box::new(dial), Box::new(|_| {})))
}

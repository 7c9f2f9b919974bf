//! The lock manager of NFSv3 with its status monitor, and three hosts that the bytes of an input
//! control. They send calls or messages, answer grants or do not, and restart. The server restarts,
//! too.

mod wishes;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use comity_export::{Exports, RpcPeer, Source};
use comity_nfs3::{Grant, Grants, Message, Mount, Nfs3, Nlm, Nsm};
use comity_proto::nlm::{self, Nlm4Holder, Nlm4Res, Nlm4Stats, procedure};
use comity_proto::{mount, nfs3, nsm};
use comity_rpc::{Answered, Dispatcher, Program};
use comity_state::{ClientId, Engine, JournalPosition, Limits, Recovered, Settings};
use comity_xdr::{Decoder, Encoder};

use crate::town::Bytes;
use crate::{assert_one_reply, call_record, filled};

/// Hosts, told apart by their addresses.
const HOSTS: usize = 3;

/// Length of the server's grace period.
const LEASE: Duration = Duration::from_secs(90);

/// Most answers that wait to be sent as calls; inputs reach this bound.
const MESSAGES_MAX: usize = 3;

/// A bound small enough for inputs to reach.
const LIMITS: Limits = Limits {
    clients: HOSTS - 1,
    states_per_client: 6,
    owners_per_client: 4,
    locks_per_file: 16,
    ..Limits::DEFAULT
};

/// Bytes of a reply before its results: record mark, and the header of an accepted call.
const HEADER_BYTES: usize = 28;

/// The server and its hosts.
pub struct Locksmith {
    exports: Arc<Exports>,
    engine: Arc<Engine>,
    store: Arc<Mutex<Recovered>>,
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    messages: Receiver<Message>,
    /// Messages that may be waiting.
    owed: usize,
    grants: Grants,
    /// Locks that hosts were given and have not answered yet.
    granted: Vec<Grant>,
    visitors: Vec<RpcPeer>,
    /// The last call of each host.
    last: Vec<Vec<u8>>,
    /// Handles of the directory and two files.
    handles: Vec<Vec<u8>>,
    age: Duration,
    boot: u32,
    xid: u32,
}

impl Locksmith {
    /// A server that has never run, with two files.
    ///
    /// # Panics
    /// If there can be none.
    #[must_use]
    pub fn new() -> Self {
        let text = b"/export *(rw,insecure,no_root_squash)\n".to_vec();
        let (plan, _) = crate::plan(Source::Text { name: "fuzz".into(), text }).expect("a plan");
        let exports = Arc::new(Exports::new(plan));
        let age = Duration::from_secs(1000);
        let engine = Arc::new(Engine::new(age, settings(1), Recovered::new()));
        let grants = Grants::new(Arc::clone(&engine), Arc::clone(&exports));
        let host = |number| IpAddr::V4(Ipv4Addr::new(192, 0, 2, number as u8));
        let visitor = |number| RpcPeer::new(SocketAddr::new(host(number), 700));
        let mut locksmith = Self {
            dispatcher: Dispatcher::new(Vec::new(), Arc::clone(&exports)),
            exports,
            engine,
            store: Arc::default(),
            messages: sync_channel(0).1,
            owed: 0,
            grants,
            granted: Vec::new(),
            visitors: (0..HOSTS).map(visitor).collect(),
            last: vec![Vec::new(); HOSTS],
            handles: Vec::new(),
            age,
            boot: 1,
            xid: 0,
        };
        locksmith.serve();
        locksmith.furnish();
        locksmith
    }

    /// Runs the steps that an input describes.
    pub fn work(&mut self, input: &[u8]) {
        let mut bytes = Bytes(input);
        while !bytes.is_empty() {
            let who = bytes.below(HOSTS);
            match bytes.below(16) {
                0 => self.let_pass(Duration::from_secs(u64::from(bytes.next()))),
                1 => self.restart(),
                2 => self.notify(who, &mut bytes),
                3 => self.answer(&mut bytes),
                4 => self.send(),
                5 => self.again(who),
                6 => self.say(who, &mut bytes),
                _ => self.wish(who, &mut bytes),
            }
            self.grant();
            self.assert_bounded();
        }
    }

    /// Ends all hosts, and checks that no state of them is left.
    pub fn end(mut self) {
        for summary in self.engine.clients_after(self.age, ClientId(0), LIMITS.clients) {
            self.engine.evict(self.age, &summary.client);
        }
        self.granted.clear();
        (0..4).for_each(|_| self.let_pass(LEASE));
        let census = self.engine.census();
        let left = (census.clients, census.files, census.states, census.owners);
        assert_eq!(left, (0, 0, 0, 0), "{census:?}");
        assert_eq!((census.locks, census.waits), (0, 0), "{census:?}");
    }

    /// Starts the server, again after a restart or when its clock is replaced.
    fn serve(&mut self) {
        let (engine, store) = (Arc::clone(&self.engine), Arc::clone(&self.store));
        let settle = move |_: JournalPosition| {
            let mut records = Vec::new();
            let position = engine.poll_records(&mut records);
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            records.into_iter().for_each(|record| store.apply(record));
            engine.stored(position);
            true
        };
        let (age, state) = (self.age, self.boot as i32 * 2 + 1);
        let (sender, receiver) = sync_channel(MESSAGES_MAX);
        let (exports, engine) = (Arc::clone(&self.exports), Arc::clone(&self.engine));
        let nlm = Nlm::new(exports, engine, move || age, Arc::new(settle)).messaging(sender);
        let nsm = Nsm::new(Arc::clone(&self.engine), move || age, state);
        let programs: Vec<Arc<dyn Program<RpcPeer>>> = vec![
            Arc::new(nlm),
            Arc::new(nsm),
            Arc::new(Nfs3::new(Arc::clone(&self.exports), [1; 8])),
            Arc::new(Mount::new(Arc::clone(&self.exports))),
        ];
        self.dispatcher = Dispatcher::new(programs, Arc::clone(&self.exports));
        (self.messages, self.owed) = (receiver, 0);
    }

    /// Mounts, and makes the files.
    fn furnish(&mut self) {
        let mut path = Encoder::new();
        path.opaque(b"/export");
        let mounted = self.call(0, (mount::PROGRAM, 3), mount::procedure::MNT, path.bytes());
        let mut mounted = Decoder::new(mounted.get(HEADER_BYTES + 4..).expect("it mounts"));
        self.handles.push(mounted.opaque(64).expect("a handle").to_vec());
        for name in [b"a", b"b"] {
            let mut place = Encoder::new();
            place.opaque(&self.handles[0]);
            place.opaque(name);
            // Unchecked, with no attributes.
            (0..7).for_each(|_| place.value(&0_u32));
            let program = (nfs3::PROGRAM, 3);
            let made = self.call(0, program, nfs3::procedure::CREATE, place.bytes());
            let mut made = Decoder::new(made.get(HEADER_BYTES + 8..).expect("it is made"));
            self.handles.push(made.opaque(64).expect("a handle").to_vec());
        }
    }

    fn let_pass(&mut self, time: Duration) {
        self.age += time;
        self.serve();
        self.engine.tick(self.age);
    }

    /// The server is killed, and begins again with what it has stored.
    fn restart(&mut self) {
        self.boot += 1;
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.engine = Arc::new(Engine::new(self.age, settings(self.boot), store));
        self.grants = Grants::new(Arc::clone(&self.engine), Arc::clone(&self.exports));
        self.granted.clear();
        self.serve();
    }

    /// Takes the grants that are due, each with the call that tells its host.
    fn grant(&mut self) {
        while let Some(effect) = self.engine.poll_effect() {
            if let Some(grant) = self.grants.take(self.age, effect) {
                let whole = Decoder::whole::<nlm::Nlm4Testargs<'_>>(&grant.arguments);
                assert!(whole.is_ok(), "a grant that its host cannot read");
                self.granted.push(grant);
            }
        }
    }

    /// A host answers a grant, cannot be reached, or sends an answer that cannot be decoded.
    fn answer(&mut self, bytes: &mut Bytes<'_>) {
        if self.granted.is_empty() {
            return;
        }
        let grant = self.granted.swap_remove(bytes.below(self.granted.len()));
        let mut results = Encoder::new();
        results.opaque(b"comity");
        match bytes.below(4) {
            0 => results.value(&Nlm4Stats::Granted),
            1 => results.value(&Nlm4Stats::Denied),
            2 => results.raw(bytes.some()),
            _ => return self.grants.withdraw(self.age, &grant),
        }
        self.grants.answered(self.age, &grant, results.bytes());
    }

    /// Sends the answers that are calls.
    fn send(&mut self) {
        let sent = self.messages.try_iter().count();
        assert_eq!(sent, self.owed, "each message is answered once");
        self.owed = 0;
    }

    /// A host notifies the server that it has restarted, truly or not.
    fn notify(&mut self, who: usize, bytes: &mut Bytes<'_>) {
        let mut arguments = Encoder::new();
        arguments.opaque(b"host");
        arguments.value(&i32::from(bytes.next()));
        self.call(who, (nsm::PROGRAM, 1), nsm::procedure::NOTIFY, arguments.bytes());
    }

    /// A host repeats its last call, because it has not received the answer.
    fn again(&mut self, who: usize) {
        let record = self.last[who].clone();
        if !record.is_empty() {
            self.dispatch(who, &record);
        }
    }

    /// A host sends a malformed call.
    fn say(&mut self, who: usize, bytes: &mut Bytes<'_>) {
        let procedure = u32::from(bytes.next());
        let arguments = filled(bytes.some(), &self.handles);
        self.ask(who, procedure, &arguments);
    }

    /// Calls the lock manager; gives the results.
    fn ask(&mut self, who: usize, procedure: u32, arguments: &[u8]) -> Vec<u8> {
        let reply = self.call(who, (nlm::PROGRAM, 4), procedure, arguments);
        reply.get(HEADER_BYTES..).unwrap_or_default().to_vec()
    }

    fn call(
        &mut self,
        who: usize,
        program: (u32, u32),
        procedure: u32,
        arguments: &[u8],
    ) -> Vec<u8> {
        self.xid += 1;
        let record = call_record(self.xid, program, procedure, arguments);
        self.last[who].clone_from(&record);
        self.dispatch(who, &record)
    }

    fn dispatch(&mut self, who: usize, record: &[u8]) -> Vec<u8> {
        let mut replies = Encoder::new();
        let visitor = &self.visitors[who];
        let peer = visitor.peer().ip();
        match self.dispatcher.answer(record, peer, visitor, &mut replies) {
            Ok(Answered::Later(late)) => drop(late.finish(&mut replies)),
            Ok(Answered::Now) => {}
            Ok(Answered::Refused(why)) => panic!("a listed peer is refused: {why:?}"),
            Ok(Answered::Never | Answered::Undecided) => panic!("a call without an answer"),
            Ok(Answered::StartTls) => panic!("TLS that was not offered"),
            Err(hangup) => panic!("a call that is none: {hangup}"),
        }
        assert_one_reply(record, &replies);
        let reply = replies.bytes().to_vec();
        if is_accepted_message(record, &reply) {
            assert_eq!(reply.len(), HEADER_BYTES, "a message has no results");
            self.owed = (self.owed + 1).min(MESSAGES_MAX);
        }
        reply
    }

    fn assert_bounded(&self) {
        let census = self.engine.census();
        assert!(census.clients <= LIMITS.clients, "{census:?}");
        assert!(census.states <= LIMITS.clients * LIMITS.states_per_client, "{census:?}");
        assert!(census.owners <= LIMITS.clients * LIMITS.owners_per_client, "{census:?}");
        // A split may exceed the limit, by one range for each range that is counted.
        let files = self.handles.len();
        assert!(census.locks + census.waits <= files * LIMITS.locks_per_file * 2, "{census:?}");
    }
}

impl Default for Locksmith {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns whether a call is an accepted message of NLM (such as LOCK_MSG): its result is sent by a
/// call in the other direction.
fn is_accepted_message(record: &[u8], reply: &[u8]) -> bool {
    let word = |bytes: &[u8], at: usize| {
        bytes.get(at * 4..at * 4 + 4).map(|word| u32::from_be_bytes(word.try_into().unwrap()))
    };
    let messages = procedure::TEST_MSG..=procedure::UNLOCK_MSG;
    word(record, 3) == Some(nlm::PROGRAM)
        && word(record, 5).is_some_and(|procedure| messages.contains(&procedure))
        && word(reply, 6) == Some(0)
}

/// A message as its host reads it.
fn assert_readable(message: &Message) {
    let mut told = Decoder::new(&message.arguments);
    let told_first = told.value::<Nlm4Res<'_>>().expect("cookie and status");
    if message.procedure == procedure::TEST_RES && told_first.stat == Nlm4Stats::Denied {
        told.value::<Nlm4Holder<'_>>().expect("who holds it");
    }
    assert!(told.rest().is_empty(), "more than an answer has");
}

fn settings(boot: u32) -> Settings {
    let usual = Settings::new(boot, [7; 16]);
    Settings { lease: LEASE, grace: LEASE, durable: true, limits: LIMITS, ..usual }
}

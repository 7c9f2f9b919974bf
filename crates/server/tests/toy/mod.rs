//! A program with all kinds of calls that are difficult for a server, and a client of it.
#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use comity_rpc::{
    Admission, Backchannel, Call, CallHeader, Deferred, Dispatcher, Done, Gate, OpaqueAuth,
    Outcome, Program, Repeat,
};
use comity_server::{Endpoints, Patience, Server, Service, Settings, blocking, blocking_for_long};
use comity_xdr::{Encoder, Opaque};

pub(crate) const PROGRAM: u32 = 0x2000_0001;
pub(crate) const NULL: u32 = 0;
/// Returns its argument.
pub(crate) const ECHO: u32 = 1;
/// Sleeps for this number of milliseconds, or until the test ends all sleeps; says beforehand that
/// it may.
pub(crate) const SLEEP: u32 = 2;
/// A deferred reply, which waits for a barrier that all waiting calls share.
pub(crate) const DEFER: u32 = 3;
pub(crate) const PANIC: u32 = 4;
/// Returns this many bytes of the file, by reference.
pub(crate) const FILE: u32 = 5;
/// Returns this many zero bytes.
pub(crate) const ZEROS: u32 = 6;
/// Panics while its deferred reply is prepared.
pub(crate) const DEFER_PANIC: u32 = 7;

/// Fails for the export of this number.
pub(crate) const EXPORT: u32 = 8;
/// Succeeds for the export of this number.
pub(crate) const OF_EXPORT: u32 = 9;
/// Does the same as `SLEEP`, and says beforehand that it takes long.
pub(crate) const SLEEP_LONG: u32 = 10;
/// Does what `SLEEP` does, and then what `SLEEP_LONG` does.
pub(crate) const SLEEP_TWICE: u32 = 11;

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) file: Option<Arc<File>>,
    pub(crate) calls: AtomicU32,
    /// Calls that sleep now.
    pub(crate) sleeping: AtomicU32,
    /// True if no call shall sleep now.
    pub(crate) is_awake: Mutex<bool>,
    pub(crate) woken: Condvar,
    pub(crate) barriers: AtomicU32,
    pub(crate) done: Mutex<u32>,
    /// The gate's answer for peers other than 127.0.0.1; it admits them if nothing is set.
    pub(crate) gate: Mutex<Option<Admission>>,
}

impl Shared {
    fn sleep(&self, milliseconds: u32) {
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let longest = Duration::from_millis(milliseconds.into());
        let is_awake = self.is_awake.lock().unwrap();
        drop(self.woken.wait_timeout_while(is_awake, longest, |is_awake| !*is_awake).unwrap());
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
    }

    /// Ends the sleeps of all calls, and those of later calls at once.
    pub(crate) fn end_sleeps(&self) {
        *self.is_awake.lock().unwrap() = true;
        self.woken.notify_all();
    }

    /// Lets later calls sleep again.
    pub(crate) fn allow_sleeps(&self) {
        *self.is_awake.lock().unwrap() = false;
    }
}

impl Gate<SocketAddr> for Shared {
    fn admits(&self, peer: &SocketAddr) -> Admission {
        let others = self.gate.lock().unwrap().filter(|_| peer.ip() != Ipv4Addr::LOCALHOST);
        others.unwrap_or(Admission::Admitted)
    }
}

pub(crate) struct Toy(pub(crate) Arc<Shared>);

/// A call that joins the others waiting for the barrier, like one that waits for a file's dirty
/// data.
struct Barrier(Arc<Shared>, u32);

struct Broken;

impl Deferred for Barrier {
    fn finish(self: Box<Self>, reply: &mut Encoder) -> Done {
        let mut done = self.0.done.lock().unwrap();
        if *done < self.1 {
            let covers = self.0.calls.load(Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(5));
            self.0.barriers.fetch_add(1, Ordering::SeqCst);
            *done = covers;
        }
        reply.value(&self.1);
        Done::default()
    }
}

impl Deferred for Broken {
    fn finish(self: Box<Self>, reply: &mut Encoder) -> Done {
        reply.value(&7_u32);
        panic!("a test of a panic in a deferred reply");
    }
}

impl Program<SocketAddr> for Toy {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    fn procedure_name(&self, _: u32, procedure: u32) -> &'static str {
        match procedure {
            NULL => "NULL",
            SLEEP => "SLEEP",
            SLEEP_LONG => "SLEEP_LONG",
            SLEEP_TWICE => "SLEEP_TWICE",
            DEFER => "DEFER",
            EXPORT => "EXPORT",
            OF_EXPORT => "OF_EXPORT",
            _ => "TOY",
        }
    }

    fn repeat(&self, _: u32, _: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, _: &SocketAddr, reply: &mut Encoder) -> Outcome {
        let number = call.arguments::<u32>().unwrap_or(0);
        match call.header.procedure {
            NULL => {}
            ECHO => match call.arguments::<Opaque<'_, { 2 << 20 }>>() {
                Ok(bytes) => reply.value(&bytes),
                Err(_) => return Outcome::GarbageArgs,
            },
            SLEEP => blocking(|| self.0.sleep(number)),
            SLEEP_LONG => blocking_for_long(|| self.0.sleep(number)),
            SLEEP_TWICE => {
                blocking(|| self.0.sleep(number));
                blocking_for_long(|| self.0.sleep(number));
            }
            DEFER => {
                let at = self.0.calls.fetch_add(1, Ordering::SeqCst) + 1;
                return Outcome::Deferred(Box::new(Barrier(Arc::clone(&self.0), at)));
            }
            PANIC => panic!("a test of a panic"),
            FILE => match &self.0.file {
                Some(file) => reply.file(Arc::clone(file), 0, number),
                None => return Outcome::SystemErr,
            },
            ZEROS => reply.raw(&vec![0; number as usize]),
            EXPORT => return Outcome::Done(Done { status: 5, export: Some(number) }),
            OF_EXPORT => return Outcome::Done(Done { status: 0, export: Some(number) }),
            DEFER_PANIC => return Outcome::Deferred(Box::new(Broken)),
            _ => return Outcome::ProcUnavail,
        }
        Outcome::Done(Done::default())
    }
}

pub(crate) struct ToyService(
    pub(crate) Dispatcher<SocketAddr, Arc<Shared>>,
    pub(crate) Arc<Shared>,
);

impl Service for ToyService {
    type Visitor = SocketAddr;
    type Gate = Arc<Shared>;

    fn lists(&self, peer: IpAddr) -> bool {
        self.1.admits(&SocketAddr::new(peer, 0)) == Admission::Admitted
    }

    fn visitor(&self, Endpoints { peer, .. }: Endpoints, _: &Arc<Backchannel>) -> SocketAddr {
        peer
    }

    fn dispatcher(&self) -> &Dispatcher<SocketAddr, Arc<Shared>> {
        &self.0
    }
}

pub(crate) fn service(shared: &Arc<Shared>) -> ToyService {
    let toy = Arc::new(Toy(Arc::clone(shared)));
    ToyService(Dispatcher::new(vec![toy], Arc::clone(shared)), Arc::clone(shared))
}

pub(crate) fn settings() -> Settings {
    Settings {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        event_loops: 1,
        patience: Patience {
            first_byte_seconds: 2,
            record_seconds: 2,
            unread_seconds: 3,
            ..Patience::default()
        },
        ..Settings::default()
    }
}

pub(crate) fn start(shared: &Arc<Shared>, settings: Settings) -> Server<ToyService> {
    Server::start(service(shared), settings).unwrap()
}

/// A whole record of a call with these arguments.
pub(crate) fn record(xid: u32, procedure: u32, arguments: &[u8]) -> Vec<u8> {
    let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
    let mut encoder = Encoder::new();
    let start = encoder.begin_record();
    let header = CallHeader { xid, program: PROGRAM, version: 1, procedure, credential, verifier };
    encoder.value(&header);
    encoder.raw(arguments);
    encoder.end_record(start);
    encoder.bytes().to_vec()
}

pub(crate) fn opaque(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.opaque(bytes);
    encoder.bytes().to_vec()
}

pub(crate) struct Client(pub(crate) TcpStream);

/// A reply: its xid, accept_stat and results.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) xid: u32,
    pub(crate) status: u32,
    pub(crate) results: Vec<u8>,
}

impl Client {
    pub(crate) fn new(server: &Server<ToyService>) -> Self {
        let stream = TcpStream::connect(server.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Connects from this address.
    pub(crate) fn from(server: &Server<ToyService>, address: &str) -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let (socket, peer) = (socket.unwrap(), server.addresses()[0]);
        socket.bind(&SocketAddr::new(address.parse().unwrap(), 0).into()).unwrap();
        socket.connect(&peer.into()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.set_tcp_nodelay(true).unwrap();
        Self(socket.into())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    pub(crate) fn reply(&mut self) -> Reply {
        let mark = self.word();
        let mut rest = vec![0; (mark & !(1 << 31)) as usize];
        self.0.read_exact(&mut rest).unwrap();
        let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
        Reply { xid: word(0), status: word(20), results: rest[24..].to_vec() }
    }

    /// The xid and the auth_stat of a refusal.
    pub(crate) fn refusal(&mut self) -> (u32, u32) {
        let words: [u32; 6] = std::array::from_fn(|_| self.word());
        assert_eq!((words[0], &words[2..5]), (20 | 1 << 31, &[1, 1, 1][..]));
        (words[1], words[5])
    }

    pub(crate) fn call(&mut self, xid: u32, procedure: u32, arguments: &[u8]) -> Reply {
        self.send(&record(xid, procedure, arguments));
        let reply = self.reply();
        assert_eq!(reply.xid, xid);
        reply
    }

    /// Returns whether the server ends the connection within `patience`.
    pub(crate) fn is_ended_within(&mut self, patience: Duration) -> bool {
        self.0.set_read_timeout(Some(patience)).unwrap();
        match self.0.read(&mut [0; 64]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    fn word(&mut self) -> u32 {
        let mut word = [0; 4];
        self.0.read_exact(&mut word).unwrap();
        u32::from_be_bytes(word)
    }
}

/// Waits until a call sleeps.
pub(crate) fn until_a_call_sleeps(shared: &Shared) {
    until_calls_sleep(shared, 1);
}

/// Waits until this many calls sleep, or more.
pub(crate) fn until_calls_sleep(shared: &Shared, count: u32) {
    eventually("the calls sleep", || shared.sleeping.load(Ordering::SeqCst) >= count);
}

/// Checks again and again, for this long, that a condition holds.
pub(crate) fn always(period: Duration, what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + period;
    while Instant::now() < end {
        assert!(holds(), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a condition holds; panics after ten seconds.
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "not within 10 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

//! The server calls its clients, over connections that they made and over connections that it
//! makes.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comity_rpc::{
    Backchannel, Call, CallHeader, Dispatcher, Done, OpaqueAuth, OpenGate, Outcome, Program,
    Repeat, SendError,
};
use comity_server::{Endpoints, Server, Service, Settings, blocking_on_peers};
use comity_xdr::Encoder;

const PATIENCE: Duration = Duration::from_secs(10);

/// A program whose procedure 1 calls the client, and is answered when the client has answered.
#[derive(Default)]
struct Asking {
    line: Mutex<Option<Arc<Backchannel>>>,
    answered: AtomicBool,
}

impl Asking {
    /// Calls the client; returns whether it has answered in time.
    fn ask(&self) -> bool {
        let line = self.line.lock().unwrap().clone().unwrap();
        line.send(&marked(b"question")).unwrap();
        let is_answered = || self.answered.load(Ordering::SeqCst);
        for _ in 0..1000 {
            if is_answered() {
                return true;
            }
            blocking_on_peers(|| std::thread::sleep(Duration::from_millis(2)));
        }
        false
    }
}

impl Program<()> for Asking {
    fn number(&self) -> u32 {
        400_100
    }

    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    fn procedure_name(&self, _: u32, _: u32) -> &'static str {
        "NULL"
    }

    fn repeat(&self, _: u32, _: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, (): &(), reply: &mut Encoder) -> Outcome {
        if call.header.procedure == 1 {
            reply.value(&self.ask());
        }
        Outcome::Done(Done::default())
    }
}

struct Caller {
    dispatcher: Dispatcher<(), OpenGate>,
    asking: Arc<Asking>,
    lines: Sender<(Endpoints, Arc<Backchannel>)>,
    replies: Sender<Vec<u8>>,
}

impl Service for Caller {
    type Visitor = ();
    type Gate = OpenGate;

    fn visitor(&self, ends: Endpoints, line: &Arc<Backchannel>) {
        *self.asking.line.lock().unwrap() = Some(Arc::clone(line));
        self.lines.send((ends, Arc::clone(line))).unwrap();
    }

    fn dispatcher(&self) -> &Dispatcher<(), OpenGate> {
        &self.dispatcher
    }

    fn heard(&self, (): &(), record: &[u8]) -> bool {
        self.asking.answered.store(true, Ordering::SeqCst);
        self.replies.send(record.to_vec()).is_ok() && record.starts_with(b"good")
    }
}

struct World {
    server: Server<Caller>,
    lines: Mutex<Receiver<(Endpoints, Arc<Backchannel>)>>,
    replies: Mutex<Receiver<Vec<u8>>>,
}

fn world() -> World {
    world_at("127.0.0.1:0")
}

fn world_at(listen: &str) -> World {
    let (line, lines) = channel();
    let (reply, replies) = channel();
    let asking = Arc::new(Asking::default());
    let dispatcher = Dispatcher::new(vec![Arc::clone(&asking) as _], OpenGate);
    let service = Caller { dispatcher, asking, lines: line, replies: reply };
    let listen = vec![listen.parse().unwrap()];
    let server = Server::start(service, Settings { listen, event_loops: 1, ..Settings::default() });
    World { server: server.unwrap(), lines: Mutex::new(lines), replies: Mutex::new(replies) }
}

impl World {
    fn connect(&self) -> (TcpStream, Arc<Backchannel>) {
        let client = TcpStream::connect(self.server.addresses()[0]).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        (client, self.greeted().1)
    }

    fn greeted(&self) -> (Endpoints, Arc<Backchannel>) {
        self.lines.lock().unwrap().recv_timeout(PATIENCE).unwrap()
    }

    fn reply(&self) -> Vec<u8> {
        self.replies.lock().unwrap().recv_timeout(PATIENCE).unwrap()
    }
}

/// A record with its mark.
fn marked(body: &[u8]) -> Vec<u8> {
    let mut record = (body.len() as u32 | 1 << 31).to_be_bytes().to_vec();
    record.extend_from_slice(body);
    record
}

/// A reply, as far as the server reads it: an xid, and the message type REPLY.
fn reply(xid: &[u8; 4]) -> Vec<u8> {
    marked(&[xid.as_slice(), &[0, 0, 0, 1]].concat())
}

fn receive(client: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    client.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn the_local_address_of_a_connection_is_known() {
    let world = world_at("0.0.0.0:0");
    let port = world.server.addresses()[0].port();
    for address in ["127.0.0.1", "127.0.0.7"] {
        let client = TcpStream::connect((address, port)).unwrap();
        let (ends, _) = world.greeted();
        assert_eq!(ends.peer, client.local_addr().unwrap());
        assert_eq!(ends.local, Some(client.peer_addr().unwrap()));
        assert_eq!(ends.local.unwrap().ip(), address.parse::<IpAddr>().unwrap());
    }
}

#[test]
fn a_client_is_called_over_its_own_connection_and_answers() {
    let world = world();
    let (mut client, line) = world.connect();
    for word in [&b"recall one"[..], b"recall two"] {
        line.send(&marked(word)).unwrap();
        assert_eq!(receive(&mut client, word.len() + 4), marked(word));
        client.write_all(&reply(b"good")).unwrap();
        assert!(world.reply().starts_with(b"good"));
    }
}

#[test]
fn a_reply_that_nobody_asked_for_ends_the_connection() {
    let world = world();
    let (mut client, line) = world.connect();
    client.write_all(&reply(b"evil")).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    let ended = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        line.send(b"x") == Err(SendError::Closed)
    });
    assert!(ended, "the back channel outlives its connection");
}

#[test]
fn many_back_channels_are_used_at_once() {
    let world = world();
    let mut connected: Vec<_> = (0..50).map(|_| world.connect()).collect();
    std::thread::scope(|scope| {
        for (_, line) in &connected {
            scope.spawn(|| (0..20).for_each(|_| line.send(&marked(b"word")).unwrap()));
        }
    });
    for (client, _) in &mut connected {
        assert_eq!(receive(client, 160), marked(b"word").repeat(20));
    }
}

/// Two clients may share one connection, and a call of one of them may wait for an answer of the
/// other.
#[test]
fn a_call_that_waits_for_its_own_peer_is_answered_over_its_connection() {
    let world = world();
    let (mut client, _) = world.connect();
    let (xid, program, version, procedure) = (7, 400_100, 1, 1);
    let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
    let mut call = Encoder::new();
    call.value(&CallHeader { xid, program, version, procedure, credential, verifier });
    client.write_all(&marked(call.bytes())).unwrap();
    assert_eq!(receive(&mut client, 12), marked(b"question"));
    client.write_all(&reply(b"good")).unwrap();
    let told = receive(&mut client, 4 + 7 * 4);
    assert_eq!(told[told.len() - 4..], 1_u32.to_be_bytes(), "it was answered in time");
}

#[test]
fn the_server_connects_to_a_peer_and_calls_it() {
    let world = world();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = world.server.dialer()(listener.local_addr().unwrap()).unwrap();
    line.send(&marked(b"probe")).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    assert_eq!(receive(&mut peer, 9), marked(b"probe"));
    peer.write_all(&reply(b"good")).unwrap();
    assert!(world.reply().starts_with(b"good"));
}

#[test]
fn a_peer_that_is_not_there_is_an_error() {
    let world = world();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(world.server.dialer()(nobody).is_err());
}

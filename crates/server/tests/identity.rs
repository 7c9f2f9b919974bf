//! The identity of a connection's peer changes during the connection.
#![allow(clippy::unwrap_used)]

mod toy;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use comity_rpc::{Backchannel, Call, Dispatcher, Done, OpenGate, Outcome, Program, Repeat};
use comity_server::{Endpoints, Server, Service, blocking};
use comity_xdr::Encoder;
use toy::{ECHO, NULL, SLEEP, record, settings};

/// A peer with a number as its identity.
struct Peer(u32);

/// Returns the caller's number. SLEEP counts itself and then sleeps.
struct Identity(Arc<AtomicU32>);

impl Program<Peer> for Identity {
    fn number(&self) -> u32 {
        toy::PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    fn procedure_name(&self, _: u32, _: u32) -> &'static str {
        "IDENTITY"
    }

    fn repeat(&self, _: u32, _: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, peer: &Peer, reply: &mut Encoder) -> Outcome {
        if call.header.procedure == SLEEP {
            self.0.fetch_add(1, Ordering::SeqCst);
            blocking(|| std::thread::sleep(Duration::from_millis(300)));
        }
        reply.value(&peer.0);
        Outcome::Done(Done::default())
    }
}

/// Gives each peer the current number.
struct Renaming {
    dispatcher: Dispatcher<Peer, OpenGate>,
    number: Arc<AtomicU32>,
}

impl Service for Renaming {
    type Visitor = Peer;
    type Gate = OpenGate;

    fn visitor(&self, _: Endpoints, _: &Arc<Backchannel>) -> Peer {
        Peer(self.number.load(Ordering::SeqCst))
    }

    fn renewed_visitor(&self, peer: &Peer) -> Option<Peer> {
        let number = self.number.load(Ordering::SeqCst);
        (number != peer.0).then_some(Peer(number))
    }

    fn dispatcher(&self) -> &Dispatcher<Peer, OpenGate> {
        &self.dispatcher
    }
}

fn start(number: &Arc<AtomicU32>, begun: &Arc<AtomicU32>) -> Server<Renaming> {
    let program = Arc::new(Identity(Arc::clone(begun)));
    let dispatcher = Dispatcher::new(vec![program as _], OpenGate);
    Server::start(Renaming { dispatcher, number: Arc::clone(number) }, settings()).unwrap()
}

fn connect(address: SocketAddr) -> toy::Client {
    let stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    toy::Client(stream)
}

fn number(results: &[u8]) -> u32 {
    u32::from_be_bytes(results.try_into().unwrap())
}

#[test]
fn calls_after_a_change_of_identity_are_made_as_the_new_peer() {
    let current = Arc::new(AtomicU32::new(1));
    let server = start(&current, &Arc::default());
    let mut client = connect(server.addresses()[0]);
    assert_eq!(number(&client.call(1, NULL, &[]).results), 1);
    current.store(2, Ordering::SeqCst);
    assert_eq!(number(&client.call(2, ECHO, &[]).results), 2);
    assert_eq!(number(&client.call(3, NULL, &[]).results), 2);
}

#[test]
fn a_running_call_keeps_its_peer_while_later_ones_have_the_new_one() {
    let current = Arc::new(AtomicU32::new(1));
    let begun = Arc::<AtomicU32>::default();
    let server = start(&current, &begun);
    let mut client = connect(server.addresses()[0]);
    // Both calls run at once: the event loop passes to another thread when the first one sleeps.
    client.send(&[record(1, SLEEP, &[]), record(2, SLEEP, &[])].concat());
    toy::eventually("both calls sleep", || begun.load(Ordering::SeqCst) == 2);
    current.store(2, Ordering::SeqCst);
    client.send(&record(3, NULL, &[]));
    let mut replies = [(); 3].map(|()| client.reply());
    replies.sort_by_key(|reply| reply.xid);
    let numbers = replies.map(|reply| number(&reply.results));
    assert_eq!(numbers, [1, 1, 2]);
}

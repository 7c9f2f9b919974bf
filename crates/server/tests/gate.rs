//! The server's treatment of peers that the gate refuses or has not decided about yet.
#![allow(clippy::unwrap_used)]

mod toy;

use std::io::Write;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use comity_rpc::{Admission, AuthStat, Dispatcher};
use comity_server::{Datagrams, Patience, Settings};
use toy::{Client, Shared, Toy, eventually, opaque, record, settings, start};

/// A server behind a gate that answers this for all peers except 127.0.0.1.
fn saying(admission: Admission) -> Arc<Shared> {
    Arc::new(Shared { gate: Some(admission).into(), ..Shared::default() })
}

#[test]
fn an_undecided_call_waits_without_a_thread_and_is_answered_once_its_peer_is_known() {
    let shared = saying(Admission::Undecided);
    let server = start(&shared, settings());
    let mut listed = Client::new(&server);
    let mut unknown = Client::from(&server, "127.0.0.7");
    let long = vec![7; 300_000];
    let echoes = [&b"one"[..], &long, b"three"].map(opaque);
    let calls = (1..).zip(&echoes).map(|(xid, echo)| record(xid, toy::ECHO, echo));
    unknown.send(&calls.collect::<Vec<_>>().concat());
    let before = server.stats();
    let begun = Instant::now();
    for xid in 0..100 {
        listed.call(xid, toy::NULL, &[]);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let after = server.stats();
    assert_eq!(after.threads, before.threads);
    assert!(after.waits - before.waits < 250, "the event loop does not spin: {after:?}");
    *shared.gate.lock().unwrap() = Some(Admission::Admitted);
    for (xid, echo) in (1..).zip(&echoes) {
        let reply = unknown.reply();
        assert_eq!((reply.xid, reply.status), (xid, 0));
        assert!(reply.results == *echo, "what was sent comes back");
    }
}

#[test]
fn the_connection_of_a_peer_that_stays_undecided_is_closed() {
    let server = start(&saying(Admission::Undecided), settings());
    let mut unknown = Client::from(&server, "127.0.0.7");
    unknown.call(1, toy::NULL, &[]);
    unknown.send(&record(2, toy::ECHO, &opaque(b"x")));
    let patience = settings().patience.record_seconds + 3;
    assert!(unknown.is_ended_within(Duration::from_secs(patience.into())));
}

#[test]
fn a_refused_peer_gets_an_error_and_keeps_its_connection() {
    let server = start(&saying(Admission::Refused(AuthStat::BadCred)), settings());
    let mut refused = Client::from(&server, "127.0.0.7");
    for xid in 0..3 {
        refused.send(&record(xid, toy::ECHO, &opaque(b"x")));
        assert_eq!(refused.refusal(), (xid, AuthStat::BadCred as u32));
        refused.call(xid, toy::NULL, &[]);
    }
}

/// An unlisted peer may call NULL; its other calls are refused, and it delays no other peer.
#[test]
fn an_unlisted_peer_is_answered_one_call_a_second() {
    let server = start(&saying(Admission::Refused(AuthStat::BadCred)), settings());
    let mut stranger = Client::from(&server, "127.0.0.7");
    let calls = (0..4).map(|xid| record(xid, toy::NULL, &[]));
    let begun = Instant::now();
    stranger.send(&calls.collect::<Vec<_>>().concat());
    for xid in 0..4 {
        assert_eq!(stranger.reply().xid, xid);
    }
    // The calls may arrive at the end of a second of the clock.
    assert!(begun.elapsed() > Duration::from_secs(2), "{:?}", begun.elapsed());
    let mut listed = Client::new(&server);
    let begun = Instant::now();
    (0..100).for_each(|xid| drop(listed.call(xid, toy::NULL, &[])));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn unlisted_connections_leave_places_for_others_and_are_closed_soon() {
    let shared = saying(Admission::Refused(AuthStat::BadCred));
    let patience = Patience { unlisted_seconds: 2, ..settings().patience };
    let server = start(&shared, Settings { connections_max: 8, patience, ..settings() });
    let mut strangers: Vec<_> = (0..6).map(|_| Client::from(&server, "127.0.0.7")).collect();
    strangers.iter_mut().for_each(|stranger| drop(stranger.call(1, toy::NULL, &[])));
    let mut seventh = Client::from(&server, "127.0.0.8");
    assert!(seventh.is_ended_within(Duration::from_secs(1)), "there is no place for it");
    let mut listed: Vec<_> = (0..2).map(|_| Client::new(&server)).collect();
    listed.iter_mut().for_each(|client| drop(client.call(1, toy::NULL, &[])));
    for stranger in &mut strangers {
        assert!(stranger.is_ended_within(Duration::from_secs(5)), "it was idle");
    }
    listed.iter_mut().for_each(|client| drop(client.call(2, toy::NULL, &[])));
}

#[test]
fn calls_of_a_paused_peer_wake_no_thread() {
    let server = start(&saying(Admission::Refused(AuthStat::BadCred)), settings());
    let mut stranger = Client::from(&server, "127.0.0.7");
    stranger.call(0, toy::NULL, &[]);
    let before = server.stats();
    for xid in 1..=500 {
        stranger.send(&record(xid, toy::NULL, &[]));
        std::thread::sleep(Duration::from_millis(2));
    }
    let woken = server.stats().waits - before.waits;
    assert!(woken < 100, "woken {woken} times by 500 calls");
}

#[test]
fn bytes_of_a_record_that_never_ends_wake_no_thread() {
    let server = start(&saying(Admission::Refused(AuthStat::BadCred)), settings());
    let mut stranger = Client::from(&server, "127.0.0.7");
    stranger.send(&[0x80, 0, 0x10, 0]);
    let before = server.stats();
    for _ in 0..500 {
        stranger.send(&[0]);
        std::thread::sleep(Duration::from_millis(2));
    }
    let woken = server.stats().waits - before.waits;
    assert!(woken < 100, "woken {woken} times by 500 bytes");
}

#[test]
fn the_end_of_a_paused_connection_wakes_no_thread() {
    let server = start(&saying(Admission::Refused(AuthStat::BadCred)), settings());
    let mut stranger = Client::from(&server, "127.0.0.7");
    stranger.call(0, toy::NULL, &[]);
    (1..=100).for_each(|xid| stranger.send(&record(xid, toy::NULL, &[])));
    let before = server.stats();
    drop(stranger);
    std::thread::sleep(Duration::from_secs(1));
    let woken = server.stats().waits - before.waits;
    assert!(woken < 100, "woken {woken} times by an end");
}

#[test]
fn paused_connections_are_read_again_a_few_in_each_turn() {
    let server = start(&saying(Admission::Refused(AuthStat::BadCred)), settings());
    let strangers: Vec<_> = (0..32 * 16).map(|_| Client::from(&server, "127.0.0.7")).collect();
    // Each connection pauses after its first byte, and its next byte waits for the next tick.
    for _ in 0..2 {
        strangers.iter().for_each(|stranger| (&stranger.0).write_all(&[0]).unwrap());
    }
    let received = || server.stats().received_bytes;
    eventually("each has sent a byte", || received() >= 32 * 16);
    let before = server.stats();
    let left = 2 * 32 * 16 - before.received_bytes;
    eventually("each has sent two", || received() == 2 * 32 * 16);
    let turns = server.stats().waits - before.waits;
    assert!((left / 32..64).contains(&turns), "tried again in {turns} turns");
}

#[test]
fn a_record_of_an_unlisted_peer_must_be_complete_soon() {
    let shared = saying(Admission::Refused(AuthStat::BadCred));
    let patience = Patience { record_seconds: 30, unlisted_seconds: 2, ..settings().patience };
    let server = start(&shared, Settings { patience, ..settings() });
    let mut listed = Client::new(&server);
    let mut stranger = Client::from(&server, "127.0.0.7");
    for client in [&mut listed, &mut stranger] {
        client.send(&[0x80, 0, 0x10, 0]);
    }
    let is_ended = |client: &mut Client| client.is_ended_within(Duration::from_millis(500));
    let mut seconds =
        (0..12).map(|_| (&stranger.0).write_all(&[0]).is_err() || is_ended(&mut stranger));
    assert!(seconds.any(|ended| ended), "a slow record keeps its connection open");
    assert!(!is_ended(&mut listed), "others have more time");
}

#[test]
fn a_connection_whose_peer_is_listed_later_is_kept() {
    let shared = saying(Admission::Undecided);
    let patience = Patience { unlisted_seconds: 2, ..settings().patience };
    let server = start(&shared, Settings { patience, ..settings() });
    let mut known_later = Client::from(&server, "127.0.0.7");
    known_later.send(&record(1, toy::ECHO, &opaque(b"x")));
    *shared.gate.lock().unwrap() = Some(Admission::Admitted);
    assert_eq!(known_later.reply().xid, 1);
    std::thread::sleep(Duration::from_secs(4));
    known_later.call(2, toy::NULL, &[]);
}

#[test]
fn shutdown_does_not_wait_for_calls_of_peers_that_are_not_admitted() {
    for said in [Admission::Refused(AuthStat::BadCred), Admission::Undecided] {
        let server = start(&saying(said), settings());
        let mut stranger = Client::from(&server, "127.0.0.7");
        let mut listed = Client::new(&server);
        stranger.call(0, toy::NULL, &[]);
        (1..4).for_each(|xid| stranger.send(&record(xid, toy::ECHO, &opaque(b"x"))));
        eventually("a call of the stranger was received", || server.stats().records >= 2);
        listed.send(&record(7, toy::SLEEP, &300_u32.to_be_bytes()));
        eventually("a call sleeps", || server.stats().hand_overs > 0);
        let begun = Instant::now();
        assert!(server.shutdown(), "all is done: {said:?}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{said:?}: {:?}", begun.elapsed());
        assert_eq!(listed.reply().xid, 7, "the call in hand is answered");
    }
}

/// Sends some 10,000 calls a second by datagrams and reads no reply.
fn flood(socket: &UdpSocket, over: &AtomicBool) {
    let call = &record(0, toy::NULL, &[])[4..];
    while !over.load(Ordering::Relaxed) {
        (0..12).for_each(|_| drop(socket.send(call)));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns whether the call is answered before a client would repeat it.
fn is_answered(socket: &UdpSocket, xid: u32) -> bool {
    socket.send(&record(xid, toy::NULL, &[])[4..]).unwrap();
    let mut reply = [0; 64];
    while socket.recv(&mut reply).is_ok() {
        if reply[..4] == xid.to_be_bytes() {
            return true;
        }
    }
    false
}

#[test]
fn a_listed_peer_is_answered_by_datagram_while_unlisted_peers_flood() {
    let shared = saying(Admission::Refused(AuthStat::BadCred));
    let [unlisted, listed] = ["127.0.0.7:0", "127.0.0.1:0"].map(|at| UdpSocket::bind(at).unwrap());
    let server = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dispatcher = Dispatcher::new(vec![Arc::new(Toy(Arc::clone(&shared))) as _], shared);
    let datagrams = Datagrams::start(server, dispatcher, |peer| peer).unwrap();
    [&unlisted, &listed].iter().for_each(|socket| socket.connect(server).unwrap());
    listed.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    unlisted.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let over = AtomicBool::new(false);
    let answered = std::thread::scope(|scope| {
        scope.spawn(|| flood(&unlisted, &over));
        // The flood has begun once one of its calls is answered.
        unlisted.recv(&mut [0; 64]).unwrap();
        let answered = (1..=40).filter(|&xid| is_answered(&listed, xid)).count();
        over.store(true, Ordering::Relaxed);
        answered
    });
    datagrams.shutdown();
    assert!(answered >= 36, "{answered} of 40 calls were answered");
}

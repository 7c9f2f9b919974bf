//! Each bound is tested against a peer that is slow, broken or hostile.
#![allow(clippy::unwrap_used)]

mod toy;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use comity_server::{Patience, Server, Settings, limits};
use toy::{
    Client, Shared, ToyService, always, eventually, opaque, record, settings, start,
    until_a_call_sleeps,
};

const PATIENCE: Duration = Duration::from_secs(8);

/// Returns the reasons for which connections have ended.
fn ends(server: &Server<ToyService>) -> Vec<&'static str> {
    server.stats().ended().filter(|(_, count)| *count > 0).map(|(reason, _)| reason).collect()
}

fn is_empty(server: &Server<ToyService>) -> bool {
    let numbers = server.stats();
    numbers.connections == 0 && numbers.buffered_bytes == 0
}

#[test]
fn a_record_of_two_gigabytes_ends_the_connection_at_once() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    let call = record(1, toy::NULL, &[]);
    client.send(&[call, vec![0xff; 8]].concat());
    assert_eq!(client.reply().xid, 1, "what came before is answered");
    assert!(client.is_ended_within(PATIENCE));
    assert_eq!(ends(&server), ["record"], "it did not wait for a time limit");
    eventually("all memory is released", || is_empty(&server));
}

#[test]
fn a_peer_that_does_not_speak_rpc_is_disconnected() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    client.send(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    assert!(client.is_ended_within(PATIENCE));
    assert_eq!(ends(&server), ["record"], "its first bytes are no record mark");
}

#[test]
fn a_peer_that_sends_one_byte_a_second_is_disconnected() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    let (call, started) = (record(1, toy::NULL, &[]), Instant::now());
    for byte in &call {
        if std::io::Write::write_all(&mut client.0, &[*byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(started.elapsed() < PATIENCE, "it went on for {:?}", started.elapsed());
    eventually("all memory is released", || is_empty(&server));
}

#[test]
fn a_connection_without_any_call_is_closed_and_one_with_a_call_is_kept() {
    let server = start(&Arc::default(), settings());
    let mut spoke = Client::new(&server);
    spoke.call(1, toy::NULL, &[]);
    assert!(Client::new(&server).is_ended_within(PATIENCE));
    std::thread::sleep(Duration::from_secs(2));
    spoke.call(2, toy::NULL, &[]);
}

#[test]
fn idle_connections_are_closed_after_their_time() {
    let patience = Patience { idle_seconds: 1, ..settings().patience };
    let server = start(&Arc::default(), Settings { patience, ..settings() });
    let mut client = Client::new(&server);
    client.call(1, toy::NULL, &[]);
    assert!(client.is_ended_within(PATIENCE));
}

#[test]
fn an_announced_megabyte_takes_memory_for_the_bytes_that_arrived() {
    let server = start(&Arc::default(), settings());
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let mut client = Client::new(&server);
            client.send(&record(1, toy::ECHO, &opaque(&vec![0; 1 << 20]))[..10]);
            client
        })
        .collect();
    eventually("the bytes arrived", || server.stats().buffered_bytes == 200);
    drop(clients);
    eventually("all memory is released", || is_empty(&server));
}

#[test]
fn a_long_record_that_stalls_ends_its_connection() {
    let server = start(&Arc::default(), settings());
    let call = record(1, toy::ECHO, &opaque(&vec![7; 1 << 20]));
    // The record stalls for good or gets a little more now and then, as the first record of a
    // connection or after a whole one.
    for (behind, more) in [(false, 0), (false, 100), (true, 0), (true, 100)] {
        let (mut client, mut sender) = (Client::new(&server), None);
        if behind {
            client.call(1, toy::ECHO, &opaque(&vec![7; 1 << 20]));
        }
        let started = Instant::now();
        client.send(&call[..100_000]);
        eventually("it is counted", || server.stats().buffered_bytes > 1 << 20);
        if more > 0 {
            let (mut stream, piece) = (client.0.try_clone().unwrap(), call[..more].to_vec());
            sender = Some(std::thread::spawn(move || {
                while std::io::Write::write_all(&mut stream, &piece).is_ok() {
                    std::thread::sleep(Duration::from_millis(100));
                }
            }));
        }
        assert!(client.is_ended_within(PATIENCE));
        assert!(started.elapsed() < PATIENCE, "it went on for {:?}", started.elapsed());
        eventually("all memory is released", || is_empty(&server));
        drop(client);
        sender.into_iter().for_each(|sender| sender.join().unwrap());
    }
}

#[test]
fn a_peer_that_closes_in_the_middle_of_a_long_record_is_gone_at_once() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    let call = record(1, toy::ECHO, &opaque(&vec![7; 1 << 20]));
    client.send(&call[..100_000]);
    eventually("it is counted", || server.stats().buffered_bytes > 1 << 20);
    drop(client);
    eventually("all memory is released", || is_empty(&server));
    assert_eq!(ends(&server), ["closed"], "it did not wait for a time limit");
}

#[test]
fn large_records_wait_for_memory_and_are_served_when_there_is_some() {
    let settings = Settings { buffered_bytes_max: 3 << 20, ..settings() };
    let server = start(&Arc::default(), settings);
    let call = record(1, toy::ECHO, &opaque(&vec![7; 1 << 20]));
    let mut greedy: Vec<_> = (0..2).map(|_| Client::new(&server)).collect();
    greedy.iter_mut().for_each(|client| client.send(&call[..200_000]));
    eventually("the memory is taken", || server.stats().buffered_bytes > 1 << 20);
    let mut honest = Client::new(&server);
    let mut sender = Client(honest.0.try_clone().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(&call));
        scope.spawn(|| {
            let is_bounded = || server.stats().buffered_bytes <= 3 << 20;
            always(Duration::from_millis(500), "the memory is bounded", is_bounded);
            greedy.clear();
        });
        assert_eq!(honest.reply().xid, 1);
    });
    drop((honest, sender));
    eventually("all memory is released", || is_empty(&server));
}

#[test]
fn one_address_cannot_take_the_memory_that_others_need() {
    let patience = Patience { record_seconds: 30, ..settings().patience };
    let settings = Settings { buffered_bytes_max: 16 << 20, patience, ..settings() };
    let server = start(&Arc::default(), settings);
    let call = record(1, toy::ECHO, &opaque(&vec![7; 1 << 20]));
    let mut greedy: Vec<_> = (0..40).map(|_| Client::new(&server)).collect();
    greedy.iter_mut().for_each(|client| client.send(&call[..200_000]));
    eventually("half is taken", || server.stats().buffered_bytes > 6 << 20);
    let is_half = || server.stats().buffered_bytes <= 8 << 20;
    always(Duration::from_millis(200), "the other half is left", is_half);
    let mut honest = Client::from(&server, "127.0.0.2");
    let started = Instant::now();
    let mut sender = Client(honest.0.try_clone().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(&call));
        assert_eq!(honest.reply().xid, 1);
    });
    // The memory of the others is free after 30 seconds.
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

#[test]
fn a_peer_that_reads_no_replies_is_not_read_from_and_then_closed() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    client.0.set_nonblocking(true).unwrap();
    let call = record(1, toy::ZEROS, &(1_u32 << 20).to_be_bytes());
    let mut calls = 0;
    let deadline = Instant::now() + Duration::from_secs(1);
    while Instant::now() < deadline {
        match std::io::Write::write(&mut client.0, &call) {
            Ok(_) => calls += 1,
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    let numbers = server.stats();
    assert!(calls > 1000, "only a few calls could be sent: {calls}");
    assert!(
        numbers.records < 50,
        "{} calls were answered although no reply was read",
        numbers.records
    );
    let held_max = (limits::RECORD_BYTES_MAX + 4 * limits::BATCH_BYTES) as u64;
    assert!(numbers.buffered_bytes <= held_max, "{} bytes held", numbers.buffered_bytes);
    Client::new(&server).call(1, toy::NULL, &[]);
    eventually("it is ended", || is_empty(&server));
}

#[test]
fn a_peer_that_reads_late_gets_everything() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    for xid in 0..40 {
        client.send(&record(xid, toy::ZEROS, &(1_u32 << 20).to_be_bytes()));
    }
    eventually("it waits", || server.stats().backlogs > 0);
    for xid in 0..40 {
        let reply = client.reply();
        assert_eq!((reply.xid, reply.results.len()), (xid, 1 << 20));
    }
    client.call(99, toy::NULL, &[]);
    eventually("nothing is held", || server.stats().buffered_bytes == 0);
}

#[test]
fn connections_are_bounded_for_one_address() {
    let settings = Settings { connections_per_address_max: 3, ..settings() };
    let server = start(&Arc::default(), settings);
    let mut clients: Vec<_> = (0..3).map(|_| Client::new(&server)).collect();
    clients.iter_mut().for_each(|client| drop(client.call(1, toy::NULL, &[])));
    // A connection without a call would be closed after two seconds, but not refused.
    assert!(Client::new(&server).is_ended_within(PATIENCE));
    assert_eq!(server.stats().refused, 1);
    clients.pop();
    eventually("a place is free", || server.stats().connections == 2);
    Client::new(&server).call(1, toy::NULL, &[]);
}

#[test]
fn shutdown_finishes_the_calls_in_hand_and_sends_their_replies() {
    let shared = Arc::<Shared>::default();
    let server = start(&shared, settings());
    let address = server.addresses()[0];
    let mut sleeper = Client::new(&server);
    let mut idle = Client::new(&server);
    idle.call(1, toy::NULL, &[]);
    sleeper.send(&record(5, toy::SLEEP, &600_u32.to_be_bytes()));
    until_a_call_sleeps(&shared);
    assert!(server.shutdown());
    assert_eq!(shared.sleeping.load(Ordering::SeqCst), 0, "shutdown did not wait for the call");
    assert_eq!(sleeper.reply().xid, 5);
    assert!(idle.is_ended_within(PATIENCE));
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn shutdown_does_not_wait_for_ever() {
    let patience = Patience { drain_seconds: 1, ..settings().patience };
    let server = start(&Arc::default(), Settings { patience, ..settings() });
    let mut client = Client::new(&server);
    for xid in 0..40 {
        client.send(&record(xid, toy::ZEROS, &(1_u32 << 20).to_be_bytes()));
    }
    eventually("it waits", || server.stats().backlogs > 0);
    let started = Instant::now();
    assert!(!server.shutdown());
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

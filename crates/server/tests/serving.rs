//! Calls and replies over real sockets: order, batches, fragments, large records, deferred replies.
#![allow(clippy::unwrap_used)]

mod toy;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use comity_server::{Settings, limits};
use toy::{
    Client, Shared, eventually, opaque, record, settings, start, until_a_call_sleeps,
    until_calls_sleep,
};

/// For calls that sleep until the test ends their sleep.
const SLEEP_MS: u32 = 15_000;

/// A call that had to wait for a sleeping one would take longer.
const PATIENCE: Duration = Duration::from_secs(7);

#[test]
fn a_batch_is_answered_in_order_by_one_receive_and_one_send() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    client.call(0, toy::NULL, &[]);
    let before = server.stats();
    let rounds = 100;
    for round in 0..rounds {
        let batch: Vec<u8> = (0..8).flat_map(|n| record(8 * round + n, toy::NULL, &[])).collect();
        client.send(&batch);
        for n in 0..8 {
            assert_eq!(client.reply().xid, 8 * round + n);
        }
    }
    let after = server.stats();
    assert_eq!(after.records - before.records, 8 * u64::from(rounds));
    assert_eq!(after.receives - before.receives, u64::from(rounds));
    assert_eq!(after.sends - before.sends, u64::from(rounds));
    // Each round has one wait; the ticks of the clock add a few.
    assert!(after.waits - before.waits <= u64::from(rounds) + 5, "{after:?}");
    assert!(server.shutdown());
}

#[test]
fn records_are_joined_wherever_the_stream_is_cut() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    let bytes: Vec<u8> = (0..200_u8).collect();
    let batch: Vec<u8> = (0..3).flat_map(|n| record(n, toy::ECHO, &opaque(&bytes))).collect();
    for cut in (1..batch.len()).step_by(7) {
        client.send(&batch[..cut]);
        std::thread::sleep(Duration::from_micros(300));
        client.send(&batch[cut..]);
        for n in 0..3 {
            let reply = client.reply();
            assert_eq!((reply.xid, reply.results), (n, opaque(&bytes)));
        }
    }
    eventually("nothing is held", || server.stats().buffered_bytes == 0);
}

#[test]
fn large_records_arrive_between_small_ones() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    for size in [60_000, 64 << 10, 100_000, 300_000, 1 << 20] {
        let bytes: Vec<u8> = (0..size).map(|n: u32| (n % 251) as u8).collect();
        let large = record(1, toy::ECHO, &opaque(&bytes));
        let small = record(2, toy::ECHO, &opaque(b"small"));
        let stream = [small.clone(), large.clone(), small.clone(), large, small].concat();
        let mut sender = Client(client.0.try_clone().unwrap());
        let sending = std::thread::spawn(move || sender.send(&stream));
        for xid in [2, 1, 2, 1, 2] {
            let reply = client.reply();
            assert_eq!(reply.xid, xid);
            let wanted = if xid == 1 { opaque(&bytes) } else { opaque(b"small") };
            assert!(reply.results == wanted, "{size} bytes came back wrong");
        }
        sending.join().unwrap();
    }
    eventually("nothing is held", || server.stats().buffered_bytes == 0);
}

#[test]
fn consecutive_large_records_take_few_receives() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    let bytes = opaque(&vec![7; 100_000]);
    let four: Vec<u8> = (0..4).flat_map(|xid| record(xid, toy::ECHO, &bytes)).collect();
    // Four records take eight receives, one for the beginning and one for the rest of each. Bytes
    // that have not arrived yet take more.
    let mut receives = || {
        let before = server.stats().receives;
        client.send(&four);
        for xid in 0..4 {
            let reply = client.reply();
            assert!((reply.xid, &reply.results) == (xid, &bytes));
        }
        server.stats().receives - before
    };
    assert!((0..300).any(|_| receives() <= 6), "always in pieces");
}

#[test]
fn a_large_record_of_many_fragments_is_joined() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    let bytes: Vec<u8> = (0..1_000_000).map(|n: u32| (n % 241) as u8).collect();
    let whole = record(1, toy::ECHO, &opaque(&bytes));
    let mut pieces: Vec<Vec<u8>> = whole[4..].chunks(4000).map(<[u8]>::to_vec).collect();
    let last = pieces.len() - 1;
    let stream: Vec<u8> = pieces
        .drain(..)
        .enumerate()
        .flat_map(|(at, piece)| {
            let mark = piece.len() as u32 | if at == last { 1 << 31 } else { 0 };
            [mark.to_be_bytes().to_vec(), piece].concat()
        })
        .collect();
    let mut sender = Client(client.0.try_clone().unwrap());
    let two = [stream.clone(), stream].concat();
    let sending = std::thread::spawn(move || sender.send(&two));
    for _ in 0..2 {
        assert!(client.reply().results == opaque(&bytes));
    }
    sending.join().unwrap();
}

#[test]
fn a_peer_that_sends_all_and_then_an_end_is_answered_and_closed() {
    let server = start(&Arc::default(), settings());
    for calls in [1, 5] {
        let mut client = Client::new(&server);
        let batch: Vec<u8> = (0..calls).flat_map(|n| record(n, toy::NULL, &[])).collect();
        client.send(&batch);
        client.0.shutdown(std::net::Shutdown::Write).unwrap();
        for n in 0..calls {
            assert_eq!(client.reply().xid, n);
        }
        assert!(client.is_ended_within(PATIENCE), "the connection is still open");
    }
    eventually("nobody is left", || server.stats().connections == 0);
}

#[test]
fn deferred_replies_are_sent_to_a_peer_that_has_shut_down_its_side() {
    let shared = Arc::<Shared>::default();
    let server = start(&shared, settings());
    let mut client = Client::new(&server);
    let batch: Vec<u8> = (0..5).flat_map(|n| record(n, toy::DEFER, &[])).collect();
    client.send(&batch);
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    for n in 0..5 {
        assert_eq!(client.reply().xid, n);
    }
    assert!(client.is_ended_within(PATIENCE), "the connection is still open");
}

#[test]
fn deferred_calls_are_done_even_if_their_peer_sends_garbage_after_them() {
    let shared = Arc::<Shared>::default();
    let server = start(&shared, settings());
    let mut client = Client::new(&server);
    let mut batch: Vec<u8> = (0..5).flat_map(|n| record(n, toy::DEFER, &[])).collect();
    batch.extend([0xff; 4]);
    client.send(&batch);
    eventually("the calls are done", || *shared.done.lock().unwrap() == 5);
}

#[test]
fn a_panic_fails_its_call_only() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    let calls = [toy::NULL, toy::PANIC, toy::DEFER_PANIC, toy::NULL];
    for (xid, procedure) in calls.into_iter().enumerate() {
        client.send(&record(xid as u32, procedure, &[]));
        let system_err = if matches!(procedure, toy::PANIC | toy::DEFER_PANIC) { 5 } else { 0 };
        let reply = client.reply();
        assert_eq!((reply.xid, reply.status, reply.results.len()), (xid as u32, system_err, 0));
    }
    assert_eq!(server.stats().panics, 2);
}

#[test]
fn calls_that_wait_for_a_barrier_share_it() {
    let shared = Arc::<Shared>::default();
    let server = start(&shared, Settings { event_loops: 2, ..settings() });
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::new(&server);
                for round in 0..10 {
                    let batch: Vec<u8> = (0..8)
                        .flat_map(|n| record(8 * round + n, toy::DEFER, &[]))
                        .chain(record(1000, toy::NULL, &[]))
                        .collect();
                    client.send(&batch);
                    assert_eq!(
                        client.reply().xid,
                        1000,
                        "a reply that need not wait is sent first"
                    );
                    for n in 0..8 {
                        assert_eq!(client.reply().xid, 8 * round + n);
                    }
                }
            });
        }
    });
    let barriers = shared.barriers.load(Ordering::SeqCst);
    println!("320 calls, {barriers} barriers, {:?}", started.elapsed());
    assert!(barriers <= 45, "{barriers} barriers for 320 calls");
    assert_eq!(server.stats().lates, 320);
}

#[test]
fn others_are_served_while_one_call_sleeps() {
    let shared = Arc::<Shared>::default();
    let server = start(&shared, settings());
    let mut sleeper = Client::new(&server);
    let mut others: Vec<_> = (0..5).map(|_| Client::new(&server)).collect();
    for other in &mut others {
        other.call(1, toy::NULL, &[]);
    }
    let sleep = record(1, toy::SLEEP, &SLEEP_MS.to_be_bytes());
    sleeper.send(&[sleep, record(2, toy::NULL, &[])].concat());
    until_a_call_sleeps(&shared);
    let started = Instant::now();
    for xid in 0..20 {
        for other in &mut others {
            other.call(xid, toy::NULL, &[]);
        }
    }
    let mut late_comer = Client::new(&server);
    late_comer.call(7, toy::NULL, &[]);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    // A call that arrives on the connection of the sleeping call is not lost.
    sleeper.send(&record(3, toy::NULL, &[]));
    assert_eq!([(); 2].map(|()| sleeper.reply().xid), [2, 3], "they need not wait");
    shared.end_sleeps();
    assert_eq!(sleeper.reply().xid, 1);
    assert!(server.stats().hand_overs >= 1);
    assert!(server.shutdown());
}

#[test]
fn a_new_connection_does_not_wait_for_a_sleeping_call_of_the_only_other_one() {
    let shared = Arc::<Shared>::default();
    let server = start(&shared, settings());
    let mut sleeper = Client::new(&server);
    sleeper.call(1, toy::NULL, &[]);
    sleeper.send(&record(2, toy::SLEEP, &SLEEP_MS.to_be_bytes()));
    until_a_call_sleeps(&shared);
    let started = Instant::now();
    Client::new(&server).call(7, toy::NULL, &[]);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    shared.end_sleeps();
    assert_eq!(sleeper.reply().xid, 2);
}

#[test]
fn a_call_that_takes_long_does_not_delay_later_calls_of_the_only_connection() {
    let shared = Arc::default();
    let server = start(&shared, settings());
    let mut client = Client::new(&server);
    client.send(&record(1, toy::SLEEP_LONG, &1_000_u32.to_be_bytes()));
    until_a_call_sleeps(&shared);
    client.send(&record(2, toy::NULL, &[]));
    assert_eq!([(); 2].map(|()| client.reply().xid), [2, 1]);
}

#[test]
fn a_connection_is_served_during_long_work_though_its_event_loop_was_left_before() {
    let shared = Arc::default();
    let server = start(&shared, settings());
    let mut client = Client::new(&server);
    client.send(&record(1, toy::SLEEP_TWICE, &500_u32.to_be_bytes()));
    until_a_call_sleeps(&shared);
    // Another thread takes the event loop, while this one keeps the only connection.
    Client::new(&server).call(7, toy::NULL, &[]);
    client.send(&record(2, toy::NULL, &[]));
    assert_eq!([(); 2].map(|()| client.reply().xid), [2, 1]);
}

#[test]
fn many_sleeping_calls_get_threads_that_end_afterwards() {
    let server = start(&Arc::default(), Settings { threads_max: 12, ..settings() });
    let mut clients: Vec<_> = (0..20).map(|_| Client::new(&server)).collect();
    for client in &mut clients {
        client.send(&record(1, toy::SLEEP, &200_u32.to_be_bytes()));
    }
    for client in &mut clients {
        client.reply();
    }
    let threads = server.stats().threads;
    assert!((2..=12).contains(&threads), "{threads} threads");
}

#[test]
fn a_file_is_sent_by_reference_and_padded_with_zeros_if_it_is_too_short() {
    let mut file = tempfile::tempfile().unwrap();
    let bytes: Vec<u8> = (0..300_000).map(|n: u32| (n % 247) as u8).collect();
    file.write_all(&bytes).unwrap();
    let shared = Arc::new(Shared { file: Some(Arc::new(file)), ..Shared::default() });
    let server = start(&shared, settings());
    let mut client = Client::new(&server);
    assert!(client.call(1, toy::FILE, &300_000_u32.to_be_bytes()).results == bytes);
    let longer = client.call(2, toy::FILE, &500_000_u32.to_be_bytes()).results;
    assert_eq!(longer.len(), 500_000);
    assert!(longer[..300_000] == bytes && longer[300_000..].iter().all(|&byte| byte == 0));
    let batch: Vec<u8> = (0..4)
        .flat_map(|n| [record(n, toy::FILE, &1000_u32.to_be_bytes()), record(n, toy::NULL, &[])])
        .flatten()
        .collect();
    client.send(&batch);
    for n in 0..4 {
        assert_eq!(client.reply().results, bytes[..1000]);
        assert_eq!(client.reply().xid, n);
    }
}

fn sleeps(xids: std::ops::Range<u32>, milliseconds: u32) -> Vec<u8> {
    xids.flat_map(|xid| record(xid, toy::SLEEP, &milliseconds.to_be_bytes())).collect()
}

/// The xids of the next `count` replies, sorted.
fn xids(client: &mut Client, count: usize) -> Vec<u32> {
    let mut xids: Vec<_> = (0..count).map(|_| client.reply().xid).collect();
    xids.sort_unstable();
    xids
}

#[test]
fn calls_of_one_connection_sleep_side_by_side() {
    let shared = Arc::<Shared>::default();
    let server = start(&shared, settings());
    let mut client = Client::new(&server);
    client.send(&[sleeps(0..8, SLEEP_MS), record(8, toy::NULL, &[])].concat());
    assert_eq!(client.reply().xid, 8, "a reply that need not wait is sent first");
    // The next calls arrive while others of the connection sleep.
    client.send(&sleeps(9..11, SLEEP_MS));
    until_calls_sleep(&shared, 10);
    shared.end_sleeps();
    assert_eq!(xids(&mut client, 10), (0..11).filter(|xid| *xid != 8).collect::<Vec<_>>());
    assert!(server.shutdown());
}

#[test]
fn more_calls_than_may_sleep_side_by_side_are_all_done() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    client.send(&sleeps(0..60, 30));
    assert_eq!(xids(&mut client, 60), (0..60).collect::<Vec<_>>());
    let threads = server.stats().threads;
    assert!(threads <= u64::from(limits::CALLS_AWAY_MAX) + 4, "{threads} threads");
    client.call(99, toy::NULL, &[]);
}

#[test]
fn all_kinds_of_calls_are_answered_by_any_thread() {
    let server = start(&Arc::default(), Settings { threads_max: 3, ..settings() });
    let mut client = Client::new(&server);
    let kinds = [toy::DEFER, toy::SLEEP, toy::ZEROS, toy::PANIC, toy::DEFER_PANIC, toy::NULL];
    for _ in 0..5 {
        let call = |xid: u32| record(xid, kinds[xid as usize % kinds.len()], &20_u32.to_be_bytes());
        let large = record(200, toy::ECHO, &opaque(&vec![7; 300_000]));
        client.send(&[(0..60).flat_map(call).collect(), large, call(60)].concat());
        let answered = xids(&mut client, 62);
        assert_eq!(answered, (0..61).chain([200]).collect::<Vec<_>>());
    }
    eventually("nothing is held", || server.stats().buffered_bytes == 0);
}

#[test]
fn sleeping_calls_are_answered_to_a_peer_that_has_shut_down_its_side() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    client.send(&sleeps(0..4, 200));
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(xids(&mut client, 4), [0, 1, 2, 3]);
    assert!(client.is_ended_within(PATIENCE), "the connection is still open");
}

#[test]
fn a_late_reply_does_not_reach_a_newer_connection() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    client.send(&[sleeps(7..8, 400), record(8, toy::NULL, &[])].concat());
    assert_eq!(client.reply().xid, 8);
    drop(client);
    eventually("it has gone", || server.stats().connections == 0);
    let mut next = Client::new(&server);
    next.call(1, toy::NULL, &[]);
    // The late reply was on its way to the event loop, and the last of these are answered after it.
    (2..100).for_each(|xid| drop(next.call(xid, toy::NULL, &[])));
}

#[test]
fn shutdown_waits_for_calls_that_sleep_side_by_side() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    client.send(&[sleeps(0..3, 400), record(3, toy::NULL, &[])].concat());
    assert_eq!(client.reply().xid, 3);
    assert!(server.shutdown());
    assert_eq!(xids(&mut client, 3), [0, 1, 2]);
}

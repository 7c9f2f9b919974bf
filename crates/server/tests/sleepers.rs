//! Calls that sleep, and the threads that they occupy.
#![allow(clippy::unwrap_used)]

mod toy;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use comity_server::Settings;
use toy::{Client, Shared, record, settings, start, until_calls_sleep};

/// The calls sleep until the test ends their sleep, or for longer than a test may take.
const SLEEP_MS: u32 = 15_000;

/// A call that had to wait for a sleeping one would take longer.
const PATIENCE: Duration = Duration::from_secs(7);

#[test]
fn one_client_cannot_occupy_all_threads_that_may_sleep() {
    let shared = Arc::<Shared>::default();
    let server = start(&shared, Settings { threads_max: 5, ..settings() });
    let mut greedy: Vec<_> = (0..6).map(|_| Client::from(&server, "127.0.0.7")).collect();
    let mut other = Client::new(&server);
    other.call(0, toy::NULL, &[]);
    for client in &mut greedy {
        client.send(&record(1, toy::SLEEP, &SLEEP_MS.to_be_bytes()));
        client.send(&record(2, toy::NULL, &[]));
    }
    until_calls_sleep(&shared, 2);
    let begun = Instant::now();
    other.call(1, toy::NULL, &[]);
    other.call(2, toy::SLEEP, &10_u32.to_be_bytes());
    other.call(3, toy::NULL, &[]);
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(shared.sleeping.load(Ordering::SeqCst), 2, "the others have to wait");
    shared.end_sleeps();
    for client in &mut greedy {
        let mut answered = [client.reply().xid, client.reply().xid];
        answered.sort_unstable();
        assert_eq!(answered, [1, 2], "the postponed calls are not done");
    }
    // No thread is still counted: as many calls can sleep at once as in the beginning.
    shared.allow_sleeps();
    for client in greedy.iter_mut().take(2) {
        client.send(&record(3, toy::SLEEP, &SLEEP_MS.to_be_bytes()));
    }
    until_calls_sleep(&shared, 2);
    shared.end_sleeps();
    greedy.iter_mut().take(2).for_each(|client| assert_eq!(client.reply().xid, 3));
}

#[test]
fn several_clients_cannot_occupy_all_threads_that_may_sleep() {
    let shared = Arc::<Shared>::default();
    let server = start(&shared, Settings { threads_max: 9, ..settings() });
    let mut other = Client::new(&server);
    other.call(0, toy::NULL, &[]);
    let addresses = ["127.0.0.7", "127.0.0.8", "127.0.0.9"];
    let mut greedy: Vec<_> =
        (0..4).flat_map(|_| addresses.map(|address| Client::from(&server, address))).collect();
    greedy.iter_mut().for_each(|client| drop(client.call(0, toy::NULL, &[])));
    for client in &mut greedy {
        client.send(&record(1, toy::SLEEP, &SLEEP_MS.to_be_bytes()));
    }
    until_calls_sleep(&shared, 6);
    let begun = Instant::now();
    for xid in (1..9).step_by(2) {
        other.call(xid, toy::SLEEP, &10_u32.to_be_bytes());
        other.call(xid + 1, toy::NULL, &[]);
    }
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    shared.end_sleeps();
    greedy.iter_mut().for_each(|client| assert_eq!(client.reply().xid, 1));
}

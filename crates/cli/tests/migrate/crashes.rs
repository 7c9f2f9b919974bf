//! The source or the target of a migration, or both, are killed at a random moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use comity_proto::nfs4::Nfsstat4;
use comity_vfs::SplitMix64;
use rustix::process::Signal;
use serde_json::json;

use crate::common::wait_until;
use crate::holder::{Holder, rival};
use crate::pair::{NAMES, Pair};
use crate::proxy::Proxy;

/// Rounds of an ordinary run.
const ROUNDS: u64 = 12;

/// Bytes at the end of a migration, among which TAKE and its answer are.
const LAST_BYTES: u64 = 700;

/// Bytes of the answer to TAKE.
const ANSWER_BYTES: u64 = 60;

/// Time after the last byte within which the servers store what they have decided.
const PAUSE_MAX_MICROSECONDS: u64 = 4000;

/// The servers that a crash kills.
const VICTIMS: [&[usize]; 3] = [&[0], &[1], &[0, 1]];

/// The moment at which servers are killed.
#[derive(Debug)]
struct Crash {
    victims: &'static [usize],
    /// Bytes that the servers have sent each other before.
    bytes: u64,
    /// Time since then.
    pause: Duration,
}

impl Crash {
    /// Chooses a crash in a migration of so many bytes: anywhere, near its end, or at the answer to
    /// TAKE, in turn.
    fn of(seed: u64, whole: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let victims = VICTIMS[random.below(VICTIMS.len() as u64) as usize];
        let last = [whole, LAST_BYTES, ANSWER_BYTES][seed as usize % 3];
        let bytes = whole - random.below(last + 1);
        let pause = Duration::from_micros(random.below(PAUSE_MAX_MICROSECONDS));
        Self { victims, bytes, pause }
    }
}

/// A pair whose source asks the target through a proxy, and the client of the source.
struct World {
    pair: Pair,
    proxy: Proxy,
    holder: Holder,
}

impl World {
    fn new() -> Self {
        let mut pair = Pair::new();
        let proxy = pair.put_proxy_between();
        let holder = Holder::new(pair.servers[0].port, &pair.file("f"), "holder");
        Self { pair, proxy, holder }
    }

    /// Begins to move the folder, kills servers meanwhile, and starts them again.
    fn crash(&mut self, crash: &Crash) {
        let Self { pair, proxy, holder } = self;
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| holder.work(&is_over));
            let migration = scope.spawn(|| pair.migrate(0, &[]));
            while proxy.passed() < crash.bytes && !migration.is_finished() {
                thread::sleep(Duration::from_micros(20));
            }
            thread::sleep(crash.pause);
            crash.victims.iter().for_each(|victim| pair.servers[*victim].signal(Signal::KILL));
            is_over.store(true, Ordering::SeqCst);
        });
        for survivor in [0, 1].iter().filter(|server| !crash.victims.contains(server)) {
            self.no_rival_has_a_lock(*survivor);
        }
        crash.victims.iter().for_each(|victim| self.pair.restart(*victim));
    }

    /// Has rivals want the locks of the client. They must not get them.
    fn no_rival_has_a_lock(&self, server: usize) {
        for range in [0, self.holder.range] {
            let answer = self.rival(server, range);
            assert_ne!(answer, Nfsstat4::Ok, "{} gives range {range} away", NAMES[server]);
        }
    }

    fn rival(&self, server: usize, range: u64) -> Nfsstat4 {
        rival(self.pair.servers[server].port, (&self.pair.file("f"), range))
    }

    /// Waits until rivals are answered that the client has its locks.
    fn wait_until_rivals_are_denied(&self, server: usize) {
        for range in [0, self.holder.range] {
            wait_until("the lock is known", || {
                let answer = self.rival(server, range);
                assert_ne!(answer, Nfsstat4::Ok, "range {range} is lost");
                answer == Nfsstat4::Denied
            });
        }
    }

    /// Checks that both servers have stored which one serves.
    fn check_tables(&self, serving: usize) {
        let [a, b] = [0, 1].map(|server| self.pair.moved(server));
        if serving == 1 {
            assert_eq!(a, Some(json!({ "state": "away", "peer": "b" })));
            assert_eq!(b, Some(json!({ "state": "here" })));
        } else {
            assert!(a.is_none_or(|place| place == json!({ "state": "here" })));
            assert_eq!(b, None);
        }
    }
}

/// Kills servers, restarts them, and has the client go on. Returns the server that serves then.
fn survive(crash: &Crash) -> usize {
    let mut world = World::new();
    world.crash(crash);
    [0, 1].iter().for_each(|server| world.no_rival_has_a_lock(*server));
    let serving = world.pair.serving(&world.holder.file);
    world.no_rival_has_a_lock(serving);
    world.check_tables(serving);
    let port = world.pair.servers[serving].port;
    world.holder.arrive(port, (serving == 1, crash.victims.contains(&serving)));
    world.wait_until_rivals_are_denied(serving);
    world.holder.let_go();
    for range in [0, world.holder.range] {
        wait_until("the lock is free", || world.rival(serving, range) == Nfsstat4::Ok);
    }
    serving
}

/// Returns the number of bytes that the servers send each other in a migration.
fn bytes_of_a_migration() -> u64 {
    let world = World::new();
    assert_eq!(world.pair.migrate(0, &[]).code, Some(0));
    world.proxy.passed()
}

#[test]
fn one_server_serves_and_no_lock_is_lost_whenever_servers_are_killed() {
    // `cargo xtask soak` sets a higher number.
    let rounds = std::env::var("COMITY_MIGRATION_CRASHES").ok();
    let rounds = rounds.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let whole = bytes_of_a_migration();
    let mut served = [[0; 2]; VICTIMS.len()];
    for seed in 0..rounds {
        let crash = Crash::of(seed, whole);
        println!("{crash:?} of {whole} bytes");
        let serving = survive(&crash);
        println!("{} serves", NAMES[serving]);
        let kind = VICTIMS.iter().position(|victims| *victims == crash.victims).unwrap();
        served[kind][serving] += 1;
    }
    println!("rounds by the victims, and by the server that serves: {served:?}");
    let is_each_met = served.iter().flatten().all(|count| *count > 0);
    // Few crashes may all end alike.
    assert!(is_each_met || rounds < 100, "the moments of the crashes are alike: {served:?}");
}

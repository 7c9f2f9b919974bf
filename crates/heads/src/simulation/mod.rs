//! A simulation of a cluster: heads that join, look at etcd each second, take exports and fail.
//!
//! The decision which head takes an export is [`Succession`], the one of the server. The rest is a
//! model of its requests, as `cargo xtask bench --cluster` counts them; times are exact, and etcd
//! answers at once. One seed gives one run.
#![allow(clippy::indexing_slicing, reason = "the numbers of heads and exports are its own")]

mod traffic;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

pub use self::traffic::{Traffic, TrafficLog};
use crate::{AddressHead, HeadlessExport, HomeHead, OwnHead, Succession};

/// Time between two looks of a head, in milliseconds.
const LOOK: u64 = 1000;

/// Time for which a head takes exports by one view, in milliseconds, and the exports that it takes
/// before it looks at the time.
const TAKING: u64 = 1000;
const TOGETHER_MAX: usize = 64;

/// Renewals in the time of a lease.
const RENEWALS: u64 = 6;

/// Requests by which a head joins.
const JOIN: Traffic = Traffic::mixed(9, 6);

/// Requests of a head that takes an export, before and after it is known that no other one has it;
/// and those of the end of its grace period.
const TRY: Traffic = Traffic::mixed(4, 2);
const LOST: Traffic = Traffic::mixed(1, 0);
const GRACE_END: Traffic = Traffic::mixed(2, 1);

/// Keys in one answer.
const PAGE: u64 = 2000;

/// A cluster.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// The number of heads.
    pub heads: usize,
    /// The number of exports. Each is the home of as many clients as the others.
    pub exports: usize,
    /// The number of clients. Each uses one export.
    pub clients: usize,
    /// True if each export has a home; the homes are divided equally.
    pub has_homes: bool,
    /// The time of a lease of a head, in milliseconds.
    pub lease: u64,
    /// The time that a head needs to take one export, in milliseconds.
    pub take: u64,
    /// The time within which the clients of an export come to its next head, in milliseconds.
    pub arrival: u64,
}

impl Site {
    /// A thousand heads, four thousand exports (a configuration has 4,096 at most), and a million
    /// clients.
    pub const LARGE: Self = Self {
        heads: 1000,
        exports: 4000,
        clients: 1_000_000,
        has_homes: true,
        lease: 10_000,
        take: 20,
        arrival: 30_000,
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HeadEvent {
    LeaseEnd(usize),
    Join(usize),
    Renew(usize),
    Claim(usize, usize),
    Look(usize),
}

/// The state of a head.
#[derive(Debug, Clone, Default)]
struct SimulatedHead {
    name: String,
    joined: Option<u64>,
    /// The time at which it last renewed its lease.
    renewed: u64,
    is_alive: bool,
    /// The last change that it has seen in etcd, the number of heads, and the keys written so far.
    seen: (u64, usize, u64),
    /// The exports without a head, and since when.
    headless: BTreeMap<usize, u64>,
}

/// A cluster at one time.
#[derive(Debug, Clone)]
pub struct Simulation {
    site: Site,
    rng: SplitMix,
    now: u64,
    events: BinaryHeap<Reverse<(u64, HeadEvent)>>,
    heads: Vec<SimulatedHead>,
    /// The heads that have a lease.
    up: BTreeSet<usize>,
    /// The head of each export in etcd, and the number of clients with records at earlier heads.
    served: Vec<Option<usize>>,
    records: Vec<u64>,
    headless: BTreeSet<usize>,
    /// The number of the last change, and of all keys that changes have written.
    change: u64,
    written: u64,
    /// The time at which an export last got a head, and the attempts that came too late.
    last_taken: u64,
    lost: u64,
    /// The traffic so far.
    pub traffic: TrafficLog,
}

impl Simulation {
    /// Makes a cluster in which no head has joined. The heads join within `within` milliseconds.
    #[must_use]
    pub fn new(site: Site, seed: u64, within: u64) -> Self {
        let head = |number| SimulatedHead { name: name_of(number), ..SimulatedHead::default() };
        let mut simulation = Self {
            site,
            rng: SplitMix(seed),
            now: 0,
            events: BinaryHeap::new(),
            heads: (0..site.heads).map(head).collect(),
            up: BTreeSet::new(),
            served: vec![None; site.exports],
            records: vec![0; site.exports],
            headless: (0..site.exports).collect(),
            change: 0,
            written: 0,
            last_taken: 0,
            lost: 0,
            traffic: TrafficLog::default(),
        };
        for head in 0..site.heads {
            let at = simulation.rng.below(within.max(1));
            simulation.at(at, HeadEvent::Join(head));
        }
        simulation
    }

    /// Returns the time in milliseconds.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Returns the time at which an export last got a head, in milliseconds.
    #[must_use]
    pub const fn last_taken(&self) -> u64 {
        self.last_taken
    }

    /// Returns how often a head tried to take an export that another one had just taken.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of exports of each head that works.
    #[must_use]
    pub fn spread(&self) -> Vec<usize> {
        let alive = (0..self.heads.len()).filter(|head| self.heads[*head].is_alive);
        let count = |head| self.served.iter().filter(|at| **at == Some(head)).count();
        alive.map(count).collect()
    }

    /// Returns whether each export has a head that works, and each head has seen that.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let works = |at: &Option<usize>| at.is_some_and(|head| self.heads[head].is_alive);
        let has_seen =
            |head: &SimulatedHead| !head.is_alive || (head.seen.0, head.seen.1) == self.sign();
        self.served.iter().all(works) && self.heads.iter().all(has_seen)
    }

    /// Lets a time pass, in milliseconds.
    pub fn run(&mut self, time: u64) {
        let until = self.now + time;
        while let Some(Reverse((at, event))) =
            self.events.peek().copied().filter(|it| it.0.0 <= until)
        {
            self.events.pop();
            self.now = at;
            self.perform(event);
        }
        self.now = until;
    }

    /// Has some heads fail now, chosen by lot.
    pub fn fail(&mut self, count: usize) {
        for _ in 0..count {
            let alive: Vec<usize> =
                (0..self.heads.len()).filter(|head| self.heads[*head].is_alive).collect();
            let Some(head) = alive.get(self.rng.below(alive.len().max(1) as u64) as usize) else {
                return;
            };
            self.heads[*head].is_alive = false;
            self.at(self.heads[*head].renewed + self.site.lease, HeadEvent::LeaseEnd(*head));
        }
    }

    fn at(&mut self, at: u64, event: HeadEvent) {
        self.events.push(Reverse((at.max(self.now), event)));
    }

    fn sign(&self) -> (u64, usize) {
        (self.change, self.up.len())
    }

    fn perform(&mut self, event: HeadEvent) {
        match event {
            HeadEvent::Join(head) => self.join(head),
            HeadEvent::LeaseEnd(head) => self.end_lease(head),
            HeadEvent::Renew(head) | HeadEvent::Look(head) | HeadEvent::Claim(head, _)
                if !self.heads[head].is_alive => {}
            HeadEvent::Renew(head) => {
                self.heads[head].renewed = self.now;
                self.traffic.add(self.now, Traffic::mixed(1, 0));
                self.at(self.now + self.site.lease / RENEWALS, HeadEvent::Renew(head));
            }
            HeadEvent::Claim(head, export) => self.claim(head, export),
            HeadEvent::Look(head) => self.look(head),
        }
    }

    fn join(&mut self, head: usize) {
        self.up.insert(head);
        self.traffic.add(self.now, JOIN);
        // Its own key and its endpoint.
        (self.change, self.written) = (self.change + 1, self.written + 2);
        let joined = &mut self.heads[head];
        (joined.joined, joined.renewed, joined.is_alive) = (Some(self.now), self.now, true);
        self.at(self.now, HeadEvent::Look(head));
        self.at(self.now + self.site.lease / RENEWALS, HeadEvent::Renew(head));
    }

    /// Ends the lease of a head that has failed. Its clients keep their records.
    fn end_lease(&mut self, head: usize) {
        self.up.remove(&head);
        for export in 0..self.served.len() {
            if self.served[export] == Some(head) {
                self.served[export] = None;
                self.records[export] = (self.site.clients / self.site.heads) as u64;
                self.headless.insert(export);
            }
        }
    }

    /// Looks for changes, and begins to take exports.
    fn look(&mut self, head: usize) {
        self.read(head);
        let (now, headless) = (self.now, &self.headless);
        let known = &mut self.heads[head].headless;
        known.retain(|export, _| headless.contains(export));
        for export in headless {
            known.entry(*export).or_insert(now);
        }
        let mut at = self.now;
        let taken: Vec<usize> =
            headless.iter().copied().filter(|it| self.takes(head, *it)).collect();
        for (number, export) in taken.iter().enumerate() {
            if number % TOGETHER_MAX == 0 && at > self.now + TAKING {
                self.at(at, HeadEvent::Look(head));
                return;
            }
            at += self.site.take;
            self.at(at, HeadEvent::Claim(head, *export));
        }
        self.at(at + LOOK, HeadEvent::Look(head));
    }

    /// Counts the requests of a look.
    fn read(&mut self, head: usize) {
        let mut traffic = Traffic::reads(1, 1);
        let (change, heads, written) = self.heads[head].seen;
        let keys = 2 * self.up.len() + self.site.exports - self.headless.len();
        if change == 0 {
            traffic += Traffic::reads(4 + (keys as u64).div_ceil(PAGE), keys as u64);
        } else if (change, heads) != self.sign() {
            let sent = self.written - written;
            traffic += Traffic { requests: 1, writes: 0, keys_sent: sent, keys_seen: keys as u64 };
            if heads > self.up.len() {
                let heads = self.up.len() as u64;
                traffic += Traffic::reads(heads.div_ceil(PAGE), heads);
            }
        }
        let (change, count) = self.sign();
        self.heads[head].seen = (change, count, self.written);
        self.traffic.add(self.now, traffic);
    }

    /// Asks the rule of the server.
    fn takes(&self, head: usize, export: usize) -> bool {
        let own = &self.heads[head];
        let elapsed = |since: u64| Duration::from_millis(self.now - since);
        let home = export % self.heads.len();
        let home = self.site.has_homes.then(|| HomeHead {
            name: &self.heads[home].name,
            is_up: self.up.contains(&home),
            is_drained: false,
        });
        let group = format!("/srv/export-{export}");
        let headless = HeadlessExport {
            group: group.as_bytes(),
            home,
            address: AddressHead::Nobody,
            since: own.headless.get(&export).copied().map(elapsed).unwrap_or_default(),
        };
        let up = own.joined.map(elapsed).unwrap_or_default();
        let own = OwnHead { name: &own.name, up, is_drained: false };
        let rule = Succession { lease: Duration::from_millis(self.site.lease) };
        rule.takes(own, &headless, self.up.iter().map(|head| &*self.heads[*head].name))
    }

    /// Takes an export, unless another head has it.
    fn claim(&mut self, head: usize, export: usize) {
        self.traffic.add(self.now, TRY);
        if self.served[export].is_some() {
            self.traffic.add(self.now, LOST);
            self.lost += 1;
            return;
        }
        self.served[export] = Some(head);
        self.headless.remove(&export);
        (self.change, self.written) = (self.change + 1, self.written + 1);
        self.last_taken = self.now;
        let records = std::mem::take(&mut self.records[export]);
        self.traffic.add(self.now, Traffic::reads(records.div_ceil(PAGE), records));
        self.traffic.add(self.now + self.site.arrival, GRACE_END);
        for _ in 0..self.site.clients / self.site.exports {
            let arrives = self.now + self.rng.below(self.site.arrival.max(1));
            self.traffic.add(arrives, Traffic::mixed(1, 1));
        }
    }
}

fn name_of(head: usize) -> String {
    format!("head-{head:04}")
}

/// A generator of random numbers (SplitMix64).
#[derive(Debug, Clone)]
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

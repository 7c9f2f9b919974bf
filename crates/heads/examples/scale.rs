//! Prints the table of docs/scale.md: a simulated cluster of a thousand heads.

use comity_heads::simulation::{Simulation, Site, Traffic};

/// Bytes of a key with its value in an answer of etcd's JSON gateway.
const KEY_BYTES: u64 = 200;

/// Processor time of etcd in microseconds for a request, for a key that it reads, for one that it
/// sends, and for a change, as `cargo xtask bench --cluster` measured them.
const REQUEST: u64 = 900;
const KEY_SEEN: u64 = 1;
const KEY_SENT: u64 = 10;
const CHANGE: u64 = 1100;

fn main() {
    println!("{}", ROW.map(|(name, width)| format!("{name:>width$}")).join(" "));
    for (name, has_homes) in [("homes", true), ("no homes", false)] {
        let site = Site { has_homes, ..Site::LARGE };
        for within in [0, 8_000, 30_000] {
            let what = format!("{name}: start in {} s", within / 1000);
            let mut simulation = Simulation::new(site, 1, within);
            let settled = settle(&mut simulation);
            print(&what, &simulation, (0, settled), simulation.last_taken(), 0);
        }
        let mut rested = Simulation::new(site, 1, 8_000);
        rested.run(180_000);
        let begin = rested.now();
        rested.run(60_000);
        print(&format!("{name}: idle"), &rested, (begin, rested.now()), 0, rested.lost());
        for failed in [1, 10, 100] {
            let (mut simulation, lost) = (rested.clone(), rested.lost());
            let begin = simulation.now();
            simulation.fail(failed);
            simulation.run(60_000);
            let time = simulation.last_taken().saturating_sub(begin);
            let what = format!("{name}: {failed} fail");
            print(&what, &simulation, (begin, simulation.now()), time, lost);
        }
    }
}

const ROW: [(&str, usize); 10] = [
    ("what happens", 24),
    ("served s", 9),
    ("requests/s", 11),
    ("writes/s", 9),
    ("keys seen/s", 12),
    ("MB/s", 8),
    ("processors", 10),
    ("requests", 10),
    ("too late", 9),
    ("exports", 10),
];

/// Runs until the cluster is at rest; returns that time.
fn settle(simulation: &mut Simulation) -> u64 {
    while !simulation.is_settled() || simulation.now() < 5_000 {
        simulation.run(1_000);
    }
    simulation.now()
}

/// Returns the processor time that etcd needs, in microseconds.
fn work(traffic: &Traffic) -> u64 {
    let Traffic { requests, writes, keys_sent, keys_seen } = traffic;
    requests * REQUEST + keys_seen * KEY_SEEN + keys_sent * KEY_SENT + writes * CHANGE
}

/// Prints the most in one second, and all requests. A bracket of `exports` is the fewest and most
/// of a head.
fn print(what: &str, simulation: &Simulation, time: (u64, u64), served: u64, lost: u64) {
    let most = |figure: fn(&Traffic) -> u64| simulation.traffic.most(time, figure);
    let spread = simulation.spread();
    let (fewest, largest) = (spread.iter().min(), spread.iter().max());
    let cells = [
        what.to_owned(),
        format!("{:.1}", served as f64 / 1e3),
        most(|it| it.requests).to_string(),
        most(|it| it.writes).to_string(),
        most(|it| it.keys_seen).to_string(),
        format!("{:.1}", (most(|it| it.keys_sent) * KEY_BYTES) as f64 / 1e6),
        format!("{:.1}", most(work) as f64 / 1e6),
        simulation.traffic.sum(time).requests.to_string(),
        (simulation.lost() - lost).to_string(),
        format!("{}-{}", fewest.copied().unwrap_or(0), largest.copied().unwrap_or(0)),
    ];
    let row = cells.iter().zip(ROW).map(|(cell, (_, width))| format!("{cell:>width$}"));
    println!("{}", row.collect::<Vec<_>>().join(" "));
}

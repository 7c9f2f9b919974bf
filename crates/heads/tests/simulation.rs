//! Properties of simulated clusters.
#![allow(clippy::unwrap_used)]

use comity_heads::simulation::{Simulation, Site};

const SMALL: Site = Site { heads: 60, exports: 240, clients: 60_000, ..Site::LARGE };

/// Starts a cluster and lets it come to rest.
fn settled(site: Site, seed: u64) -> Simulation {
    let mut simulation = Simulation::new(site, seed, 5_000);
    simulation.run(120_000);
    simulation
}

#[test]
fn after_a_while_each_export_has_one_head_that_works_and_all_have_seen_it() {
    for seed in 0..20 {
        for has_homes in [true, false] {
            let mut simulation = settled(Site { has_homes, ..SMALL }, seed);
            assert!(simulation.is_settled(), "seed {seed}");
            assert_eq!(simulation.spread().iter().sum::<usize>(), SMALL.exports);
            simulation.fail(1 + seed as usize);
            let is_known = has_homes && simulation.is_settled();
            assert!(!is_known, "seed {seed}: no head knows of the failure yet");
            simulation.run(60_000);
            assert!(simulation.is_settled(), "seed {seed}");
            assert_eq!(simulation.spread().iter().sum::<usize>(), SMALL.exports);
        }
    }
}

/// A look at an unchanged cluster is one request, and a lease is renewed six times in its time.
#[test]
fn an_idle_head_makes_less_than_two_requests_a_second() {
    for seed in 0..5 {
        let simulation = settled(SMALL, seed);
        let traffic = simulation.traffic.sum((90_000, 120_000));
        assert!(traffic.requests <= 30 * 2 * SMALL.heads as u64, "{traffic:?}");
        assert_eq!((traffic.writes, traffic.keys_sent), (0, traffic.requests), "{traffic:?}");
    }
}

#[test]
fn exports_of_failed_heads_are_served_soon_after_their_lease_and_by_many() {
    for seed in 0..20 {
        let mut simulation = settled(SMALL, seed);
        assert!(simulation.spread().iter().all(|count| *count == 4), "all are at home");
        let (failed, lost) = (simulation.now(), simulation.lost());
        simulation.fail(12);
        simulation.run(60_000);
        // A lease, a look, and two ranks: the heads before may have failed, too.
        let latest = failed + SMALL.lease + 1000 + 2 * 2000 + 1000;
        assert!(simulation.last_taken() <= latest, "{}", simulation.last_taken() - failed);
        assert!(simulation.spread().into_iter().max().unwrap() <= 16, "{:?}", simulation.spread());
        assert!(simulation.lost() - lost <= 24, "{} attempts were too late", simulation.lost());
    }
}

#[test]
fn one_seed_gives_one_run() {
    let [one, same, other] = [7, 7, 8].map(|seed| settled(SMALL, seed).traffic);
    assert!(one == same && one != other);
}

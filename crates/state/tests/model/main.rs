//! The engine against a simple model, under random sequences of what clients do: they open, lock,
//! are delegated files, fall silent, restart; the server is killed; the clock jumps.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "../introduction/mod.rs"]
mod introduction;
mod people;
mod reference;
mod step;

use proptest::prelude::*;

use people::Both;
use step::{Step, step};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_says_what_the_model_says(steps in proptest::collection::vec(step(), 1..120)) {
        let mut both = Both::new();
        for step in &steps {
            both.perform(step);
        }
        both.end();
    }
}

/// A file where a delegation was recalled and another given stayed behind when all were gone.
#[test]
fn a_file_is_forgotten_though_a_delegation_was_recalled_there() {
    let mut both = Both::new();
    for step in [
        Step::Open { client: 0, file: 0, access: 2, deny: 0 },
        Step::Close { client: 0, file: 0 },
        Step::Open { client: 1, file: 0, access: 1, deny: 0 },
        Step::Silence { client: 0, seconds: 1 },
    ] {
        both.perform(&step);
    }
    both.end();
}

/// The first edge of RFC 8881, 8.4.2.1.
#[test]
fn a_client_that_lost_its_lease_before_the_restart_reclaims_nothing() {
    let mut both = Both::new();
    let open = |client| Step::Open { client, file: 0, access: 3, deny: 2 };
    for step in [open(0), Step::Silence { client: 0, seconds: 100 }] {
        both.perform(&step);
    }
    assert!(both.may_reclaim(0), "nobody needed what it has");
    both.perform(&open(1));
    assert!(!both.may_reclaim(0));
    assert!(both.may_reclaim(1));
    both.perform(&Step::Restart);
}

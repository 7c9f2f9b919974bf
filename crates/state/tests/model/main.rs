//! The engine compared with a simple model under random sequences of events: clients open, lock,
//! get delegations, fall silent and restart; the server is killed; time passes.
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
    fn the_engine_agrees_with_the_model(steps in proptest::collection::vec(step(), 1..120)) {
        let mut both = Both::new();
        for step in &steps {
            both.perform(step);
        }
        both.end();
    }
}

/// A file once stayed behind if one delegation of it was recalled and another was granted.
#[test]
fn a_file_is_forgotten_although_a_delegation_of_it_was_recalled() {
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

/// The first edge condition of RFC 8881, 8.4.2.1.
#[test]
fn a_client_that_lost_its_lease_before_the_restart_reclaims_nothing() {
    let mut both = Both::new();
    let open = |client| Step::Open { client, file: 0, access: 3, deny: 2 };
    for step in [open(0), Step::Silence { client: 0, seconds: 100 }] {
        both.perform(&step);
    }
    assert!(both.may_reclaim(0), "the state is kept while no other client needs it");
    both.perform(&open(1));
    assert!(!both.may_reclaim(0));
    assert!(both.may_reclaim(1));
    both.perform(&Step::Restart);
}

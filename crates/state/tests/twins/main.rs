//! An engine whose state is exported, sent as bytes and imported into a fresh engine answers the
//! same as an engine whose state never moved.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "../introduction/mod.rs"]
mod introduction;
mod person;
mod side;
mod step;
mod twins;

use proptest::prelude::*;

use step::step;
use twins::{Next, Twins};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn an_engine_answers_the_same_after_its_state_has_moved(
        steps in proptest::collection::vec(step(), 1..100),
    ) {
        let mut twins = Twins::new(Next::SameSecret);
        steps.into_iter().for_each(|step| twins.perform(step));
    }

    #[test]
    fn an_engine_with_another_secret_answers_the_same(
        steps in proptest::collection::vec(step(), 1..100),
    ) {
        let mut twins = Twins::new(Next::OtherSecrets);
        steps.into_iter().for_each(|step| twins.perform(step));
    }

    #[test]
    fn an_engine_to_which_the_state_has_come_back_answers_the_same(
        steps in proptest::collection::vec(step(), 1..100),
    ) {
        let mut twins = Twins::new(Next::ThereAndBack);
        steps.into_iter().for_each(|step| twins.perform(step));
    }
}

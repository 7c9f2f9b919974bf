//! Answers to callbacks: the server goes on after any answer of a client that holds delegations,
//! and has them all back in the end.
#![no_main]

use comity_fuzz::Town;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut town = Town::new();
    town.delegate();
    town.replies(input);
    town.end();
});

//! Answers to callbacks: a client that holds delegations may answer anything. The server continues,
//! and has all delegations back in the end.
#![no_main]

use comity_fuzz::Town;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut town = Town::new();
    town.delegate();
    town.replies(input);
    town.end();
});

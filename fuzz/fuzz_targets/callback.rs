//! Answers to callbacks: whatever a client that holds delegations answers to what it is asked, the
//! server goes on, and gets back in the end what it has given.
#![no_main]

use comity_fuzz::Town;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut town = Town::new();
    town.delegate();
    town.replies(input);
    town.end();
});

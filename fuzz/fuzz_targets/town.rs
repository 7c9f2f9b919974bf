//! A whole server in one process: whatever three clients do one after the other, with time that
//! passes, restarts and evictions, every reply is one, what is remembered stays within its bounds,
//! and nothing of it is left when all have gone.
#![no_main]

use comity_fuzz::Town;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut town = Town::new();
    town.live(input);
    town.end();
});

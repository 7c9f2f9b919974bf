//! A whole server in one process: three clients send any requests one after the other, time passes,
//! the server restarts, clients are evicted. Every reply is well-formed, the state stays within its
//! bounds, and nothing of it is left when all clients have gone.
#![no_main]

use comity_fuzz::Town;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut town = Town::new();
    town.live(input);
    town.end();
});

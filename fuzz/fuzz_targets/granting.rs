//! The grant program: calls with any arguments get one reply each, and nobody gets a right that was
//! not granted by them.
#![no_main]

use comity_fuzz::GrantingServer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| GrantingServer::new().calls(input));

//! The server's end of TLS meets bytes that no honest client sends: instead of a hello, between the
//! flights of a handshake, and after it, where they are sealed with the client's keys, so that they
//! are opened and understood.
#![no_main]

use comity_fuzz::Eavesdropped;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| Eavesdropped::new().attack(input));

//! The server's end of TLS, with bytes that no honest client sends. They replace a hello, or come
//! between the flights of a handshake, or follow it. In the last case they are encrypted with the
//! client's keys, so that the server decrypts and decodes them.
#![no_main]

use comity_fuzz::Eavesdropped;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| Eavesdropped::new().attack(input));

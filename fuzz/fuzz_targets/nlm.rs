//! The lock manager of NFSv3: whatever hosts of several addresses ask for, at once or by messages
//! that are answered by calls, every call has one reply, every message one answer that can be read,
//! every lock that somebody waited for is taken or given up, and nothing is left when all have
//! gone.
#![no_main]

use comity_fuzz::Locksmith;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut locksmith = Locksmith::new();
    locksmith.work(input);
    locksmith.end();
});

//! The lock manager of NFSv3: hosts of several addresses send any calls, or messages that are
//! answered by calls. Every call has one reply and every message one well-formed answer. Every
//! awaited lock is taken or cancelled, and no state is left when all hosts have gone.
#![no_main]

use comity_fuzz::Locksmith;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut locksmith = Locksmith::new();
    locksmith.work(input);
    locksmith.end();
});

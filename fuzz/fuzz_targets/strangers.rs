//! A victim that works by NFSv3, NLM, 4.0 and 4.1, and strangers that call whatever the bytes of an
//! input say between its steps, with its handles, stateids and other names: an unlisted host, a
//! wrong port, another user of another host. The victim is answered as if it were alone.
#![no_main]

use comity_fuzz::Strangers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| Strangers::new().disturb(input));

//! A victim works by NFSv3, NLM, 4.0 and 4.1. Between its steps strangers (an unlisted host, a
//! wrong port, another user of another host, another user of the victim's own client) send the
//! calls that an input describes, with the victim's handles, stateids and other names. The victim
//! gets the same answers as if it were alone.
#![no_main]

use comity_fuzz::Strangers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| Strangers::new().disturb(input));

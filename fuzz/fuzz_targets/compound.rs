//! NFSv4: any sequence of COMPOUNDs of any operations gets one reply each, in every minor version,
//! over a file system that remembers what they have done and a memory of clients, opens and locks.
#![no_main]

use comity_fuzz::House;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| House::new().compounds(input));

//! NFSv3: any sequence of calls with any arguments gets one reply each, over a file system that
//! remembers what they have done.
#![no_main]

use comity_fuzz::House;
use comity_proto::nfs3::PROGRAM;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| House::new().calls(PROGRAM, input));

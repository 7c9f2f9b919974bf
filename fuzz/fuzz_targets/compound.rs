//! NFSv4: any sequence of COMPOUNDs of any operations gets one reply each, in every minor version,
//! over a file system and a state of clients, opens and locks that persist between them.
#![no_main]

use comity_fuzz::TestServer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| TestServer::new().compounds(input));

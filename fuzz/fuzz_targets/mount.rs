//! MOUNT: calls with any arguments get one reply each.
#![no_main]

use comity_fuzz::TestServer;
use comity_proto::mount::PROGRAM;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| TestServer::new().calls(PROGRAM, input));

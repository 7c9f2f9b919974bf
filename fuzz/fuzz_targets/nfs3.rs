//! NFSv3: any sequence of calls with any arguments gets one reply each, over a file system that
//! persists between them.
#![no_main]

use comity_fuzz::TestServer;
use comity_proto::nfs3::PROGRAM;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| TestServer::new().calls(PROGRAM, input));

//! A host with any key may finish a TLS handshake at a server with a `[[peer]]`, and do no more.

use std::fs;

use crate::common::line::{Identity, Line};
use crate::common::raw::{MOUNT, NFS, NLM, Raw, stream_from};
use crate::common::{Running, comity};
use crate::pair::{Pair, state};

const AUTH_BADCRED: u32 = 1;
const AUTH_TOOWEAK: u32 = 5;

#[test]
fn a_stranger_with_a_key_gets_no_further_than_its_handshake() {
    let pair = Pair::new();
    let own = state(&pair.place, "other");
    let mut command = comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register", "--port", "0"]);
    command.arg("--config").arg(pair.place.path("a.toml")).arg("--state-dir").arg(&own);
    let log = pair.place.path("log");
    let server = Running::start_with_log(&mut command, fs::File::create(&log).unwrap());
    let plain = stream_from([127, 0, 0, 2], server.port);
    let identity = Identity::self_signed();
    let mut stranger = Raw::on(Line::secure(plain, &own.join("tls.crt"), Some(&identity)), 0);
    for procedure in 1..=7 {
        let denied = stranger.denied(comity_proto::migration::PROGRAM, procedure);
        assert_eq!(denied, AUTH_TOOWEAK, "{procedure}");
    }
    for program in [NFS, MOUNT, NLM] {
        assert_eq!(stranger.denied(program, 1), AUTH_BADCRED, "{program}");
    }
    drop(stranger);
    assert!(server.stop().success());
    let told = fs::read_to_string(&log).unwrap();
    let reason = format!("it has proved the key {}, which no [[peer]] has", identity.public());
    assert!(told.contains(&reason), "{told}");
}

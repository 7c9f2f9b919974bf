//! The keys of attackers. One of them was granted a directory next to the victim's.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use comity_proto::grants;
use comity_xdr::Opaque;
use rcgen::{CertificateParams, KeyPair};

use crate::common::line::Identity;
use crate::common::{Place, Running, comity, run};
use crate::victim::USER;
use crate::wire::{Source, Tls, Wire, bytes};

/// The name of the granted directory.
pub(crate) const HOME: &str = "granted";

/// A host that the export admits by keys only.
pub(crate) const KEYED: [u8; 4] = [127, 0, 0, 4];

/// The TLS identities of attackers.
pub(crate) struct Keys {
    /// Has a key with all rights to [`HOME`].
    pub(crate) granted: Arc<Tls>,
    /// Has a key without rights.
    pub(crate) unknown: Arc<Tls>,
    /// Has no key.
    pub(crate) none: Arc<Tls>,
}

impl Keys {
    /// Makes the keys. The user of this process, root, grants the directory.
    pub(crate) fn make(place: &Place, server: &Running) -> Self {
        let [_, granted, unknown] = ["alice", "granted", "unknown"].map(|who| identity(place, who));
        let user = run(Command::new("id").arg("-un")).out;
        let state = place.state().display().to_string();
        let does = |who: &str, arguments: &[&str]| does((place, server), who, arguments);
        does("alice", &["account", "bind", user.trim(), "alice.pub", "--state-dir", &state]);
        let home = place.data().join(HOME).display().to_string();
        let grant =
            ["grant", &home, "--to", "granted.pub", "--rights", "rwxcda", "--expires", "1d"];
        let credential = does("alice", &grant);
        let trusted = place.state().join("tls.crt");
        let tls = |identity| Arc::new(Tls { trusted: trusted.clone(), identity });
        let keys =
            Self { granted: tls(Some(granted)), unknown: tls(Some(unknown)), none: tls(None) };
        submit(server.port, &keys.granted, &credential);
        keys
    }
}

/// Submits a credential under the key that it licenses.
fn submit(port: u16, tls: &Arc<Tls>, credential: &str) {
    let source = Source { address: KEYED, low_port: false, uid: USER };
    let arguments = bytes(&Opaque::<{ grants::SUBMISSION_BYTES_MAX }>(credential.as_bytes()));
    let submit = (grants::PROGRAM, grants::VERSION, grants::procedure::SUBMIT);
    let reply = Wire::connect_by(port, source, Some(tls)).ask(&(submit, arguments)).unwrap();
    // The reply has RPC success and status OK, and ends with outcome 0 for the only credential: it
    // is held.
    let told = [&reply[20..28], &reply[reply.len() - 4..]].concat();
    assert_eq!(told, [0; 12], "the credential is held");
}

/// Runs a command as the holder of a key; it must succeed.
fn does((place, server): (&Place, &Running), who: &str, arguments: &[&str]) -> String {
    let mut command = comity();
    command.args(arguments).current_dir(place.path("."));
    command.env("COMITY_KEY", place.path(&format!("{who}.pem")));
    command.env("XDG_CONFIG_HOME", place.path(who));
    command.env("COMITY_SERVER", format!("127.0.0.1:{}", server.port));
    let done = run(&mut command);
    assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.err);
    done.out
}

/// Makes a key; writes its public part to a file.
fn identity(place: &Place, who: &str) -> Identity {
    let private = place.path(&format!("{who}.pem"));
    let made = run(comity().args(["key", "new"]).arg(&private));
    place.write(&format!("{who}.pub"), &made.out);
    let key = KeyPair::from_pem(&fs::read_to_string(private).unwrap()).unwrap();
    let params = CertificateParams::new(vec![format!("{who}.example")]).unwrap();
    Identity::new(params.self_signed(&key).unwrap().der().clone(), &key)
}

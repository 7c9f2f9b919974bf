//! When a right ends, the opens and locks of its key end, and other clients can lock at once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;

use comity_proto::nfs4::{NfsLockType4, Nfsstat4, Stateid4, operation as op, share};
use common::four::{Four, Opened, operation};
use common::line::{Identity, Line};
use common::{PATIENCE, Place, Running, comity, run, wait_until};
use rcgen::{CertificateParams, KeyPair};

/// A server with an export for keys, and two people with one key each.
struct ServerOfTwoPeople {
    place: Place,
    server: Running,
    alice: Identity,
    bob: Identity,
}

impl ServerOfTwoPeople {
    fn new() -> Self {
        let place = Place::new();
        fs::create_dir_all(place.data().join("report")).unwrap();
        fs::create_dir(place.data().join("attic")).unwrap();
        fs::write(place.data().join("report/text"), "the text").unwrap();
        let exports = format!("{} *(rw,sec=key,xprtsec=mtls)\n", place.data().display());
        let exports = place.write("exports", &exports);
        let server = Running::start(place.serve(&["--exports"]).arg(exports));
        let [alice, bob] = ["alice", "bob"].map(|person| identity(&place, person));
        let site = Self { place, server, alice, bob };
        let user = run(std::process::Command::new("id").arg("-un")).out;
        let state = site.place.state();
        let bind = ["account", "bind", user.trim(), "alice.pub", "--state-dir"];
        site.does("alice", &[&bind[..], &[state.to_str().unwrap()]].concat());
        site
    }

    /// Runs a command as a person. It must succeed.
    fn does(&self, person: &str, arguments: &[&str]) -> String {
        let mut command = comity();
        command.args(arguments).current_dir(self.place.path("."));
        command.env("COMITY_KEY", self.place.path(&format!("{person}.pem")));
        command.env("XDG_CONFIG_HOME", self.place.path(person));
        command.env("COMITY_SERVER", format!("127.0.0.1:{}", self.server.port));
        let done = run(&mut command);
        assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.err);
        done.out
    }

    /// Alice grants these rights on the folder to Bob, who submits the credential.
    fn grant(&self, rights: &str, expires: &str) {
        let folder = self.place.data().join("report");
        let grant = ["grant", folder.to_str().unwrap(), "--to", "bob.pub", "--rights", rights];
        let credential = self.does("alice", &[&grant[..], &["--expires", expires]].concat());
        self.place.write("to-bob", &credential);
        self.does("bob", &["submit", "to-bob"]);
    }

    fn client(&self, identity: &Identity, name: &str) -> Four {
        let plain = TcpStream::connect(("127.0.0.1", self.server.port)).unwrap();
        let line = Line::secure(plain, &self.place.state().join("tls.crt"), Some(identity));
        Four::try_on(line, 0, name).unwrap()
    }

    fn text(&self) -> PathBuf {
        self.place.data().join("report/text")
    }
}

/// Makes the key of a person; writes its public part to a file.
fn identity(place: &Place, person: &str) -> Identity {
    let private = place.path(&format!("{person}.pem"));
    let made = run(comity().args(["key", "new"]).arg(&private));
    place.write(&format!("{person}.pub"), &made.out);
    let key = KeyPair::from_pem(&fs::read_to_string(private).unwrap()).unwrap();
    let params = CertificateParams::new(vec![format!("{person}.example")]).unwrap();
    Identity::new(params.self_signed(&key).unwrap().der().clone(), &key)
}

/// Opens the file, and gives a delegation of it back to the server.
fn opened(client: &mut Four, site: &ServerOfTwoPeople, access: u32) -> Opened {
    let opened = client.open(&site.text(), access).unwrap();
    if let Some(delegation) = opened.delegation {
        client.give_back(&opened, delegation).unwrap();
    }
    opened
}

/// The status of a stateid by TEST_STATEID.
fn tested(client: &mut Four, stateid: &Stateid4) -> u32 {
    let question = (op::TEST_STATEID, [&1u32.to_be_bytes()[..], &operation(0, stateid).1].concat());
    let answer = client.perform(vec![question]).unwrap();
    u32::from_be_bytes(answer[12..16].try_into().unwrap())
}

fn is_revoked(client: &mut Four, stateid: &Stateid4) -> bool {
    tested(client, stateid) == Nfsstat4::AdminRevoked as u32
}

/// Bob has the file open and locked, and Alice waits for a lock on it. `ends` ends Bob's right.
fn ends_when(rights: &str, expires: &str, ends: impl FnOnce(&ServerOfTwoPeople)) {
    let site = ServerOfTwoPeople::new();
    site.grant(rights, expires);
    let mut bob = site.client(&site.bob, "bob");
    let held = opened(&mut bob, &site, share::WRITE);
    let lock = bob.lock(&held, NfsLockType4::Write, (0, 10)).unwrap();
    let mut alice = site.client(&site.alice, "alice");
    let hers = opened(&mut alice, &site, share::WRITE);
    let wanted = |alice: &mut Four| alice.lock(&hers, NfsLockType4::Write, (0, 10));
    assert_eq!(wanted(&mut alice).err(), Some(Nfsstat4::Denied));
    assert_eq!(tested(&mut bob, &held.stateid), 0);
    ends(&site);
    wait_until("the open ends", || is_revoked(&mut bob, &held.stateid));
    assert!(is_revoked(&mut bob, &lock));
    wanted(&mut alice).unwrap();
    // The client frees its revoked stateids; the server then has no more state of it.
    for stateid in [lock, held.stateid] {
        bob.perform(vec![operation(op::FREE_STATEID, &stateid)]).unwrap();
        assert_eq!(tested(&mut bob, &stateid), Nfsstat4::BadStateid as u32);
    }
}

#[test]
fn a_revocation_ends_opens_and_locks() {
    ends_when("rwx", "30d", |site| drop(site.does("alice", &["revoke", "to-bob"])));
}

#[test]
fn expiry_ends_opens_and_locks() {
    ends_when("rwx", "10s", |_| ());
}

#[test]
fn a_move_out_of_the_granted_folder_ends_opens_and_locks() {
    ends_when("rwx", "30d", |site| {
        fs::rename(site.text(), site.place.data().join("attic/text")).unwrap();
    });
}

#[test]
fn the_end_of_the_grantors_account_ends_opens_and_locks() {
    let site = ServerOfTwoPeople::new();
    site.grant("rwx", "30d");
    let mut bob = site.client(&site.bob, "bob");
    let held = bob.open(&site.text(), share::READ).unwrap();
    let state = site.place.state();
    let state = state.to_str().unwrap();
    site.does("alice", &["account", "unbind", "alice.pub", "--state-dir", state]);
    wait_until("the open ends", || is_revoked(&mut bob, &held.stateid));
}

#[test]
fn the_end_of_an_account_ends_opens_and_locks_of_its_own_key() {
    let site = ServerOfTwoPeople::new();
    let mut alice = site.client(&site.alice, "alice");
    let reading = alice.open(&site.text(), share::READ).unwrap();
    let delegation = reading.delegation.unwrap();
    let mut other = site.client(&site.alice, "other");
    let attic = site.place.data().join("attic/other");
    fs::write(&attic, "other").unwrap();
    let writing = other.open(&attic, share::WRITE).unwrap();
    if let Some(delegation) = writing.delegation {
        other.give_back(&writing, delegation).unwrap();
    }
    let lock = other.lock(&writing, NfsLockType4::Write, (0, 10)).unwrap();
    let state = site.place.state();
    let state = state.to_str().unwrap();
    site.does("alice", &["account", "unbind", "alice.pub", "--state-dir", state]);
    wait_until("the open ends", || is_revoked(&mut other, &writing.stateid));
    assert!(is_revoked(&mut other, &lock));
    wait_until("the delegation ends", || is_revoked(&mut alice, &delegation));
    assert!(is_revoked(&mut alice, &reading.stateid));
}

#[test]
fn binding_a_key_to_another_user_ends_its_opens_and_locks() {
    let site = ServerOfTwoPeople::new();
    let mut alice = site.client(&site.alice, "alice");
    let held = opened(&mut alice, &site, share::READ);
    let state = site.place.state();
    let state = ["--state-dir", state.to_str().unwrap()];
    site.does("alice", &[&["account", "bind", "nobody", "alice.pub"], &state[..]].concat());
    wait_until("the open ends", || is_revoked(&mut alice, &held.stateid));
}

#[test]
fn a_key_whose_account_stays_keeps_its_opens() {
    let site = ServerOfTwoPeople::new();
    let mut alice = site.client(&site.alice, "alice");
    let held = opened(&mut alice, &site, share::READ);
    let state = site.place.state();
    let state = ["--state-dir", state.to_str().unwrap()];
    site.does("bob", &[&["account", "bind", "nobody", "bob.pub"], &state[..]].concat());
    let mut bob = site.client(&site.bob, "bob");
    let ended = opened(&mut bob, &site, share::READ);
    site.does("alice", &[&["account", "unbind", "bob.pub"], &state[..]].concat());
    wait_until("the open of the other ends", || is_revoked(&mut bob, &ended.stateid));
    assert_eq!(tested(&mut alice, &held.stateid), 0);
}

#[test]
fn a_delegation_is_recalled_when_its_right_ends() {
    let site = ServerOfTwoPeople::new();
    site.grant("rx", "30d");
    let mut bob = site.client(&site.bob, "bob");
    let held = bob.open(&site.text(), share::READ).unwrap();
    let delegation = held.delegation.unwrap();
    site.does("alice", &["revoke", "to-bob"]);
    assert!(bob.listen(PATIENCE, |bob| !bob.recalled.is_empty()));
    assert_eq!(bob.recalled, [delegation]);
    assert!(is_revoked(&mut bob, &delegation));
    assert!(is_revoked(&mut bob, &held.stateid));
}

#[test]
fn opens_are_kept_if_another_credential_gives_the_same_right() {
    let site = ServerOfTwoPeople::new();
    site.grant("rwx", "10s");
    site.grant("rx", "30d");
    let mut bob = site.client(&site.bob, "bob");
    let reading = opened(&mut bob, &site, share::READ);
    let mut other = site.client(&site.bob, "other");
    let writing = opened(&mut other, &site, share::WRITE);
    wait_until("the open ends", || is_revoked(&mut other, &writing.stateid));
    assert_eq!(tested(&mut bob, &reading.stateid), 0, "the second credential allows it");
}

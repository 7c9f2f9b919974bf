//! A victim uses all protocols, and between its steps attackers call every procedure of every
//! program with the victim's handles, ids, stateids and owner strings, both exact and altered. The
//! victim's replies and all counts must be those of an undisturbed run.
//!
//! The attackers are a host that no export is offered to, a user of the victim's own host (where
//! the export takes calls from low ports only), another user of another listed host, and callers
//! from a host that the export admits by keys only: in clear, by TLS without a key, with a key
//! without rights, and with a key to which root has granted a directory next to the victim's. Calls
//! of attackers that are admitted nowhere are denied before they reach a program. The user of the
//! listed host leaves out the calls that it has a right to make:
//!
//! It does not read, change or ask the attributes of a file that is delegated for writing: each of
//! these makes the server call the victim back.
//! It does not take the name of a client without state, nor a name that its owner has not used yet:
//! the RFCs give such a name to any client that asks for it.
//!
//! Another user of the victim's own client comes from a low port of the victim's host, has a client
//! of its own, and sends every operation in the victim's session, too. It leaves out what no server
//! can distinguish from the victim's client (docs/security.md):
//!
//! It takes no turn of the victim's: neither the next request of the victim's slot of the session
//! (it has another slot), nor the next OPEN of the victim's open-owner of 4.0.
//! It frees no lock of NLM, whose owners are of a host and not of a user, and does not say that the
//! host has restarted.
//!
//! All attackers in clear send datagrams, too, and call the portmapper by datagrams and by
//! connections. The hunt runs in a network namespace of its own, where the portmapper's port is
//! free.
//!
//! The victim's uid at another listed host is no attacker, because AUTH_SYS cannot distinguish it
//! from the victim after a move.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

mod attacker;
mod attacks;
#[path = "../common/mod.rs"]
mod common;
mod keys;
mod moves;
mod portmapper;
mod victim;
mod wire;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;
use std::time::Duration;

use attacker::Attacker;
use common::{Place, Running, comity, is_root, metrics, run};
use keys::{HOME, Keys};
use serde_json::Value;
use victim::{Known, STEPS, USER, Victim};

/// The counts of all clients. Attackers may have clients and sessions of their own, but no other
/// state.
const COUNTS: [&str; 8] = [
    "opens",
    "locks",
    "lock_waiters",
    "delegations",
    "recalls_sent_total",
    "recalls_any_total",
    "delegations_revoked_total",
    "lock_waits_total",
];

/// The facts that are compared for each of the victim's clients.
const TOLD: [&str; 9] = [
    "spoken",
    "address",
    "confirmed",
    "expired",
    "sessions",
    "opens",
    "locks",
    "delegations",
    "waits",
];

/// The state after a step: the counts, and the facts about the victim's clients.
type Counts = (BTreeMap<&'static str, u64>, Vec<Vec<Value>>);

/// Longer than all attacks between two calls of the victim's 4.0 client take.
const LEASE_SECONDS: &str = "600";

/// A run of the victim.
struct Run {
    heard: Vec<Vec<u8>>,
    counts: Vec<Counts>,
    callbacks: usize,
}

/// Set for the run of the hunt in its own network.
const CHILD: &str = "COMITY_TEST_STRANGERS";

#[test]
fn a_victim_among_strangers_is_answered_as_if_it_were_alone() {
    if !is_root() {
        return;
    }
    let script = "ip link set lo up || exit 3
                  exec \"$0\" --ignored --exact the_hunt_in_its_own_network --nocapture";
    let mut shell = Command::new("unshare");
    shell.args(["--net", "sh", "-c", script]).arg(std::env::current_exe().unwrap());
    let output = shell.env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(3) {
        return println!("skipped: needs network namespaces and the program ip");
    }
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "the hunt did not run: {said}");
}

#[test]
#[ignore = "needs the network in which the other test runs it"]
fn the_hunt_in_its_own_network() {
    assert!(std::env::var_os(CHILD).is_some(), "run the other test, which runs this one");
    // All folders are kept until the end, so that no two runs have the same fileids.
    let mut alone = vec![go(false)];
    // The upper half of a change attribute counts nanoseconds and changes every 4.3 seconds.
    std::thread::sleep(Duration::from_millis(4500));
    // More than two runs, because a random byte is sometimes the same in two of them.
    alone.extend((0..3).map(|_| go(false)));
    let (_, among) = go(true);
    let alone: Vec<&Run> = alone.iter().map(|(_, run)| run).collect();
    for run in &alone {
        assert_eq!((run.callbacks, &run.counts), (0, &alone[0].counts), "undisturbed runs");
    }
    for (number, (name, _)) in STEPS.iter().enumerate() {
        assert_eq!(among.counts[number], alone[0].counts[number], "the counts after {name}");
    }
    assert_eq!(among.callbacks, 0, "callbacks to the victim");
    for (number, heard) in among.heard.iter().enumerate() {
        let alone: Vec<_> = alone.iter().map(|run| run.heard[number].as_slice()).collect();
        assert_alike(number, heard, &alone);
    }
}

fn place() -> Place {
    let place = Place::new();
    let private = place.data().join("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(place.data(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    chown(&private, Some(USER), Some(USER)).unwrap();
    fs::create_dir(place.data().join(HOME)).unwrap();
    fs::write(place.data().join(HOME).join("own"), "").unwrap();
    // All runs have one key, because the server derives its name from it.
    fs::create_dir(place.state()).unwrap();
    fs::set_permissions(place.state(), Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(place.write("state/handle.key", "sixteen bytes..."), private_file())
        .unwrap();
    place
}

fn private_file() -> Permissions {
    Permissions::from_mode(0o600)
}

/// Runs the victim's work from beginning to end in a new folder.
fn go(is_disturbed: bool) -> (Place, Run) {
    let place = place();
    let data = place.data();
    let clients = "127.0.0.1(rw,secure) 127.0.0.3(rw,insecure) 127.0.0.4(rw,sec=key,xprtsec=mtls)";
    let line = format!("{} {clients}\n", data.display());
    let exports = place.write("exports", &line);
    let mut command = comity();
    command.args(["serve", "--json", "--port", "0", "--listen", "127.0.0.1", "--portmap"]);
    command.args(["--metrics", "127.0.0.1:0", "--lease-seconds", LEASE_SECONDS]);
    command.arg("--state-dir").arg(place.state()).arg("--exports").arg(&exports);
    let server = Running::start(&mut command);
    let mut attackers = Vec::new();
    if is_disturbed {
        attackers = Attacker::all(server.port, &Keys::make(&place, &server));
    }
    let mut victim = Victim::connect(server.port, &data);
    let registered = victim.registered();
    let mut counts = Vec::new();
    for (name, step) in STEPS {
        attack(&mut attackers, &victim.known);
        println!("{name}");
        assert_eq!(victim.registered(), registered, "the portmapper before {name}");
        step(&mut victim);
        counts.push(count(&place, &server, &victim));
    }
    let at_home = attackers.iter().filter(|attacker| attacker.is_at_home()).count();
    assert_eq!(at_home, usize::from(is_disturbed), "the granted key has found its directory");
    let names = fs::read_dir(data.join(HOME)).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["own"], "the granted directory");
    let callbacks = victim.callbacks();
    (place, Run { heard: victim.heard, counts, callbacks })
}

/// Lets all attackers attack at the same time.
fn attack(attackers: &mut [Attacker], known: &Known) {
    std::thread::scope(|scope| {
        for attacker in attackers {
            scope.spawn(|| attacker.attack(known));
        }
    });
}

fn count(place: &Place, server: &Running, victim: &Victim) -> Counts {
    let page = metrics(server);
    let number = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("comity_{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
    };
    let all = COUNTS.into_iter().map(|name| (name, number(name))).collect();
    let said = run(comity().args(["clients", "--json", "--state-dir"]).arg(place.state()));
    let clients: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let of_client = |id: &u64| {
        let id = Value::from(format!("{id:016x}"));
        let client = clients.iter().find(|client| client["client"] == id);
        client.map(|client| TOLD.map(|name| client[name].clone()).to_vec()).unwrap_or_default()
    };
    (all, victim.known.clientids.iter().map(of_client).collect())
}

/// Compares a reply with those of undisturbed runs, except in the words in which these differ:
/// times, fileids, and random values.
fn assert_alike(number: usize, heard: &[u8], alone: &[&[u8]]) {
    let lengths = alone.iter().map(|reply| reply.len());
    assert!(lengths.clone().all(|length| length == heard.len()), "reply {number}: {heard:02x?}");
    for at in (0..heard.len()).step_by(4) {
        let word = |reply: &[u8]| reply[at..at + 4].to_vec();
        let is_fixed = alone.iter().all(|reply| word(reply) == word(alone[0]));
        let wanted = if is_fixed { word(alone[0]) } else { word(heard) };
        assert_eq!(word(heard), wanted, "reply {number}, byte {at}");
    }
}

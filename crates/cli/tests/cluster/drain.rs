//! `comity cluster drain`: all exports of a head move to others, and it takes none.

use std::fs;
use std::time::Duration;

use comity_proto::nfs4::Nfsstat4;
use comity_proto::nlm::{Nlm4Lock, Nlm4Lockargs, Nlm4Unlockargs, procedure};
use comity_xdr::{Encode, Opaque, encoded};
use rustix::process::Signal;
use serde_json::Value;

use crate::common::four::Four;
use crate::common::raw::{NLM, Raw};
use crate::common::whereabouts::{fileid, location};
use crate::common::{Said, wait_until};
use crate::etcd::EtcdServer;
use crate::heads::{Heads, NAMES};
use crate::holder::rival;
use crate::{complete, hold, reclaim};

/// Starts heads with a metrics page, of which the first one serves both exports.
fn first_has_both() -> Option<Heads> {
    let arguments = ["--metrics", "127.0.0.1:0"].map(str::to_owned).to_vec();
    let heads = Heads::over(EtcdServer::start()?, (Duration::from_secs(90), ""), arguments);
    wait_until("each head serves its export", || are_at(&heads, ["a", "b"]));
    let path = heads.place.data().join("two");
    let said = heads.ask(1, &["cluster", "move", path.to_str().unwrap(), "--to", "a"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    wait_until("the other head has seen it", || are_at(&heads, ["a", "a"]));
    Some(heads)
}

/// Returns whether both heads show the two exports at these heads.
fn are_at(heads: &Heads, at: [&str; 2]) -> bool {
    let exports = [0, 1].map(|asked| heads.status(asked)["exports"].clone());
    exports.iter().all(|shown| [0, 1].map(|export| &shown[export]["head"]) == at)
}

/// The state of an export at the head that serves it.
fn is_in_grace(heads: &Heads, head: usize) -> bool {
    let exports = heads.status(head)["exports"].clone();
    (0..2).any(|export| !exports[export]["grace_left_seconds"].is_null())
}

fn drain(heads: &Heads, asked: usize, more: &[&str]) -> Said {
    heads.ask(asked, &[&["cluster", "drain"], more].concat())
}

fn undrain(heads: &Heads, asked: usize, head: &str) -> Said {
    heads.ask(asked, &["cluster", "undrain", head])
}

/// A client of NFSv3 with a lock in an export, which keeps the export where it is.
struct Host {
    raw: Raw,
    file: Vec<u8>,
}

impl Host {
    fn new(heads: &Heads, export: &str) -> Self {
        fs::write(heads.file(export, "three"), "text").unwrap();
        let mut raw = Raw::connect(heads.port(0), 0);
        let root = raw.mount(&heads.place.data().join(export)).unwrap();
        let file = raw.lookup(&root, b"three").unwrap();
        let mut host = Self { raw, file };
        let (cookie, alock, state) = (Opaque(&b""[..]), named(&host.file), 1);
        let (block, exclusive, reclaim) = (false, true, false);
        let lock = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state };
        ask(&mut host.raw, procedure::LOCK, &lock);
        host
    }

    fn unlock(&mut self) {
        let unlock = Nlm4Unlockargs { cookie: Opaque(b""), alock: named(&self.file) };
        ask(&mut self.raw, procedure::UNLOCK, &unlock);
    }
}

fn named(file: &[u8]) -> Nlm4Lock<'_> {
    let (caller_name, oh) = (Opaque(&b"host"[..]), Opaque(&b"owner"[..]));
    Nlm4Lock { caller_name, fh: Opaque(file), oh, svid: 1, l_offset: 0, l_len: 1 }
}

/// Calls the lock manager, which must grant the lock.
fn ask(raw: &mut Raw, procedure: u32, arguments: &impl Encode) {
    assert_eq!(raw.call(NLM, procedure, &encoded(arguments)), [0; 8]);
}

#[test]
fn a_drained_head_has_moved_its_exports_with_their_state_and_gets_none_back() {
    let Some(mut heads) = first_has_both() else { return };
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    let others = hold(&mut client, &heads.file("two", "g"));
    let said = drain(&heads, 1, &["a"]);
    assert_eq!(said.code, Some(0), "{} {}", said.err, heads.log(0));
    for line in ["one: moved to b (1 of 2)\n", "two: moved to b (2 of 2)\na is drained: "] {
        assert!(said.out.contains(line), "{}", said.out);
    }
    assert_eq!(location(&mut client, &file.handle).as_deref(), Some("b"));
    let mut client = Four::follow(heads.port(1), 0, "client");
    client.change(&file, file.stateid).unwrap();
    client.change(&others, others.stateid).unwrap();
    assert!(!is_in_grace(&heads, 1));
    assert_eq!(rival(heads.port(1), (&heads.file("one", "f"), 0)), Nfsstat4::Denied);
    assert!(heads.ask(1, &["cluster", "status"]).out.contains("heads: a (drained), b\n"));
    assert!(heads.metrics(1).contains("comity_cluster_is_drained{head=\"a\"} 1\n"));

    let said = heads.move_export((1, 0), &[]);
    assert!(said.err.contains("the head a is drained"), "{}", said.err);
    let said = drain(&heads, 0, &["b"]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.err.contains("no head could take the exports of b"), "{}", said.err);
    let said = drain(&heads, 0, &["c"]);
    assert!(said.err.contains("no head c is up, and no export has home=c"), "{}", said.err);

    let said = undrain(&heads, 1, "a");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(undrain(&heads, 0, "a").err.contains("the head a is not drained"));
    assert!(are_at(&heads, ["b", "b"]), "they do not move back, not even to their home");
    heads.kill(1);
    let mut looker = heads.client(0, "looker");
    wait_until("the first head takes exports again", || fileid(&mut looker, &file.handle).is_ok());
}

#[test]
fn a_drained_head_takes_no_export_when_it_starts_unless_it_is_the_last_one() {
    let Some(mut heads) = first_has_both() else { return };
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    drop(client);
    heads.stop(0);
    let said = drain(&heads, 1, &["a"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out.starts_with("a is not up; when it starts, it takes no export"),
        "{}",
        said.out
    );
    let said = heads.ask(1, &["cluster", "status"]);
    assert!(said.out.contains("a is drained, and is not up\n"), "{}", said.out);

    // The home of an export is there first, and gives others the time of a lease.
    heads.stop(1);
    heads.start(0);
    heads.start(1);
    wait_until("the other head has both exports", || are_at(&heads, ["b", "b"]));
    let mut client = Four::follow(heads.port(1), 0, "client");
    let file = reclaim(&mut client, &file).unwrap();
    complete(&mut client);

    heads.kill(1);
    wait_until("the drained head has both exports", || {
        let exports = heads.status(0)["exports"].clone();
        exports[0]["head"] == "a" && exports[1]["head"] == "a"
    });
    let mut client = Four::follow(heads.port(0), 0, "client");
    wait_until("it serves them", || fileid(&mut client, &file.handle).is_ok());
    let file = reclaim(&mut client, &file).unwrap();
    complete(&mut client);
    heads.start(1);
    wait_until("it moves them to the head that is back", || are_at(&heads, ["b", "b"]));
    let mut client = Four::follow(heads.port(1), 0, "client");
    client.change(&file, file.stateid).unwrap();
}

#[test]
fn an_export_that_cannot_move_stays_until_the_reason_is_gone() {
    let Some(heads) = first_has_both() else { return };
    let mut host = Host::new(&heads, "two");
    let said = drain(&heads, 0, &["a", "--wait-seconds", "3"]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.out.contains("one: moved to b (1 of 2)"), "{}", said.out);
    let reason = "two: stays at a: the host 127.0.0.1 holds locks by NFSv3";
    assert!(said.out.contains(reason), "{}", said.out);
    assert!(said.err.contains("1 export could not move from a, which tries again"), "{}", said.err);
    let said = heads.ask(1, &["cluster", "status"]);
    assert!(said.out.contains("two: a, and stays there: the host 127.0.0.1"), "{}", said.out);
    let said = drain(&heads, 1, &["a", "--json", "--wait-seconds", "1"]);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &told["state"]), (Some(1), &Value::from("staying")), "{told}");
    let why = told["staying"][0]["stays_because"].as_str().unwrap();
    assert!(why.contains("the host 127.0.0.1 holds locks"), "{told}");

    host.unlock();
    wait_until("the export has moved by itself", || are_at(&heads, ["b", "b"]));
    let said = drain(&heads, 0, &["a", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    wait_until("no reason is left", || heads.status(1)["exports"][1]["stays_because"].is_null());
}

#[test]
fn a_head_that_fails_while_it_is_drained_is_followed_and_takes_nothing_when_it_is_back() {
    let Some(mut heads) = first_has_both() else { return };
    let _host = Host::new(&heads, "two");
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    let others = hold(&mut client, &heads.file("two", "g"));
    let said = drain(&heads, 1, &["a", "--no-wait"]);
    assert!(said.out.contains("a takes no more exports"), "{}", said.out);
    let said = std::thread::scope(|scope| {
        let draining = scope.spawn(|| drain(&heads, 1, &["a"]));
        wait_until("one export has moved", || heads.status(1)["exports"][0]["head"] == "b");
        heads.signal(0, Signal::KILL);
        draining.join().unwrap()
    });
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.err.contains("a has ended before all of its exports"), "{}", said.err);
    heads.kill(0);

    // The client has its lock in the export that has moved, and reclaims it in the other one.
    let mut client = Four::follow(heads.port(1), 0, "client");
    client.change(&file, file.stateid).unwrap();
    assert_eq!(rival(heads.port(1), (&heads.file("one", "f"), 0)), Nfsstat4::Denied);
    wait_until("the other head serves it", || fileid(&mut client, &others.handle).is_ok());
    reclaim(&mut client, &others).unwrap();
    heads.start(0);
    wait_until("both heads are up", || heads.status(1)["heads"].as_array().unwrap().len() == 2);
    assert!(are_at(&heads, ["b", "b"]));
    assert_eq!(heads.status(0)["heads"][0]["is_drained"], true);
}

#[test]
fn exports_with_one_address_leave_a_drained_head_together() {
    let lease = Duration::from_secs(90);
    let Some(heads) = Heads::with_options(lease, ", \"address=192.0.2.7\"") else { return };
    wait_until("the first head has both exports", || are_at(&heads, ["a", "a"]));
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("two", "f"));
    let said = drain(&heads, 0, &["a"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    wait_until("both heads show it", || are_at(&heads, ["b", "b"]));
    assert_eq!(heads.status(1)["addresses"][0]["head"], NAMES[1]);
    let mut client = Four::follow(heads.port(1), 0, "client");
    client.change(&file, file.stateid).unwrap();
}

/// The target of a move is drained after it was asked whether it could take the export.
#[test]
fn a_head_that_is_drained_during_a_move_does_not_take_the_export() {
    let Some(mut heads) = Heads::new(Duration::from_secs(90)) else { return };
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    heads.kill(0);
    let mut client = Four::follow(heads.port(1), 0, "client");
    wait_until("the other head serves it", || fileid(&mut client, &file.handle).is_ok());
    let file = reclaim(&mut client, &file).unwrap();
    heads.start(0);
    wait_until("both heads show it", || are_at(&heads, ["b", "b"]));
    let moved = std::thread::scope(|scope| {
        // It waits for the end of the grace period.
        let moving = scope.spawn(|| heads.move_export((1, 0), &[]));
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(drain(&heads, 1, &["a"]).code, Some(0));
        complete(&mut client);
        moving.join().unwrap()
    });
    assert_eq!(moved.code, Some(1), "{}", moved.out);
    // A slow machine may not have offered the export before the drain.
    let reasons = ["or this head was drained", "the head a is drained"];
    assert!(reasons.iter().any(|why| moved.err.contains(why)), "{}", moved.err);
    client.change(&file, file.stateid).unwrap();
    assert!(are_at(&heads, ["b", "b"]));
}

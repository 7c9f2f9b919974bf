//! A migration warns of what may go badly for clients, and a dry run does so, too.

use std::fs;

use comity_proto::nlm::{Nlm4Lock, Nlm4Lockargs, procedure};
use comity_xdr::{Encoder, Opaque};
use serde_json::Value;

use crate::common::raw::{NLM, Raw};
use crate::common::{Running, comity, run};
use crate::pair::{NAMES, Pair, state};

/// Takes the option `insecure` out of the configuration of a server.
fn close_high_ports(pair: &Pair, server: usize) {
    let file = pair.place.path(&format!("{}.toml", NAMES[server]));
    let text = fs::read_to_string(&file).unwrap().replace("\"insecure\", ", "");
    fs::write(&file, text).unwrap();
    assert_eq!(pair.ask(server, &["reload"]).code, Some(0));
}

#[test]
fn clients_that_may_not_come_from_high_ports_are_a_warning() {
    let pair = Pair::new();
    close_high_ports(&pair, 0);
    let dry = pair.migrate(0, &["--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.err);
    let told = pair.migrate(0, &["--dry-run", "--json"]);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told["warnings"].as_array().unwrap().len(), 1, "{told}");
    let real = pair.migrate(0, &[]);
    assert_eq!(real.code, Some(0), "{}", real.err);
    let warning = format!(
        "comity: warning: {}: 127.0.0.1 may call from ports below 1024 only; Linux comes",
        pair.place.data().display()
    );
    for said in [dry.err, real.err] {
        assert!(said.starts_with(&warning) && said.contains("option insecure"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let back = pair.migrate(1, &["--json"]);
    let back: Value = serde_json::from_str(&back.out).unwrap();
    assert_eq!(back["warnings"], serde_json::json!([]), "b lets them in");
}

#[test]
fn a_dry_run_tells_of_a_host_that_holds_locks_by_nfsv3() {
    let pair = Pair::new();
    fs::write(pair.file("f"), "text").unwrap();
    let mut host = Raw::connect(pair.servers[0].port, 0);
    let root = host.mount(&pair.place.data()).unwrap();
    let file = host.lookup(&root, b"f").unwrap();
    let (caller_name, oh) = (Opaque(&b"host"[..]), Opaque(&b"owner"[..]));
    let alock = Nlm4Lock { caller_name, fh: Opaque(&file), oh, svid: 1, l_offset: 0, l_len: 1 };
    let (cookie, block, exclusive, reclaim) = (Opaque(&b""[..]), false, true, false);
    let lock = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state: 1 };
    let mut arguments = Encoder::new();
    arguments.value(&lock);
    let granted = host.call(NLM, procedure::LOCK, arguments.bytes());
    assert_eq!(granted, [0; 8], "no cookie, and granted");

    let said = pair.migrate(0, &["--dry-run"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let warning = "comity: warning: the exports do not move at present: the host";
    assert!(said.err.starts_with(warning), "{}", said.err);
    assert!(said.err.contains("holds locks by NFSv3"), "{}", said.err);
    let real = pair.migrate(0, &[]);
    assert_eq!(real.code, Some(1), "{}", real.out);
    assert!(real.err.contains("holds locks by NFSv3, which has no way to follow"), "{}", real.err);
}

#[test]
fn a_dry_run_refuses_a_server_whose_local_programs_share_the_locks() {
    let pair = Pair::new();
    let config = pair.place.path("a.toml");
    let mut command = comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register", "--port", "0"]);
    command.arg("--config").arg(&config).arg("--state-dir").arg(state(&pair.place, "local"));
    let _local = Running::start(&mut command);
    let mut migrate = comity();
    migrate.arg("migrate").arg(pair.place.data()).args(["--to", "b", "--dry-run", "--state-dir"]);
    let said = run(migrate.arg(state(&pair.place, "local")));
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.err.contains("start it with --no-local-locks"), "{}", said.err);
}

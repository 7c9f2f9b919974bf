//! Registration with Debian's rpcbind in namespaces of its own; needs root, unshare and rpcbind.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use comity_server::portmap::{Advertised, Registration};

const CHILD: &str = "COMITY_TEST_RPCBIND";

const SCRIPT: &str = "mount -t tmpfs none /run && ip link set lo up || exit 3
rpcbind -w -f & daemon=$!
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  test -S /run/rpcbind.sock && break; sleep 0.1
done
\"$0\" --ignored --exact registers_and_withdraws --nocapture; status=$?
kill $daemon; exit $status";

#[test]
fn a_registered_program_is_known_and_a_withdrawn_one_is_not() {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !Path::new("/usr/sbin/rpcbind").exists() {
        return println!("skipped: it needs root and rpcbind");
    }
    let mut shell = Command::new("unshare");
    shell.args(["--net", "--mount", "sh", "-c", SCRIPT]).arg(std::env::current_exe().unwrap());
    let output = shell.env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(3) {
        return println!("skipped: no namespaces here");
    }
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "the test inside did not run: {said}");
}

#[test]
#[ignore = "needs the namespaces in which the other test runs it"]
fn registers_and_withdraws() {
    assert!(std::env::var_os(CHILD).is_some(), "run the other test, which runs this one");
    let offered = [100_003, 100_005].map(|program| Advertised {
        program,
        version: 3,
        protocol: comity_proto::portmap::TCP,
        address: "0.0.0.0:2049".parse().unwrap(),
    });
    let registration = Registration::new(&offered, &[]).unwrap();
    assert!(known().contains("2049"), "{}", known());
    // A killed server leaves its entries registered, and the next one replaces them.
    let address = "0.0.0.0:2050".parse().unwrap();
    let again = Registration::new(&offered.map(|one| Advertised { address, ..one }), &[]).unwrap();
    assert!(!known().contains("2049") && known().contains("2050"), "{}", known());
    again.withdraw().unwrap();
    assert!(!known().contains("2050"), "{}", known());
    drop(registration);
    std::fs::remove_file("/run/rpcbind.sock").unwrap();
    // A program without the socket of rpcbind uses version 2 over TCP.
    Registration::new(&offered, &[]).unwrap();
    assert!(known().contains("2049"), "{}", known());
}

fn known() -> String {
    let output = Command::new("rpcinfo").args(["-p", "127.0.0.1"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

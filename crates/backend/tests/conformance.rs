//! Every file system of this crate does what an `Fs` must do.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;

use comity_backend::{Memory, MemoryOptions, Passthrough, PassthroughOptions};
use comity_conformance::{Needs, Report, run};
use comity_vfs::{Cred, Disk, Gid, Uid};

fn cred(uid: u32, gid: u32) -> Cred<Disk> {
    Cred::new(Uid::new(uid), Gid::new(gid))
}

fn check(what: &str, report: &Report) {
    println!("{what}: {report}");
    assert!(report.failed.is_empty(), "{what}: {report}");
}

/// The ids that the test runs under.
fn server() -> Cred<Disk> {
    cred(rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

fn needs_met(fs: &Passthrough, dir: &Path) -> Needs {
    let capabilities = fs.capabilities();
    let lacking = [
        (capabilities.caller_identities, Needs::IDENTITIES.and(Needs::DEVICES)),
        (capabilities.still_links, Needs::STILL_LINKS),
        (shares_blocks(dir), Needs::CLONE),
    ];
    let lacking = lacking.into_iter().filter(|(present, _)| !present);
    lacking.fold(Needs::ALL, |has, (_, needs)| has.without(needs))
}

/// Returns whether the file system of a directory lets files share blocks, as the kernel says.
fn shares_blocks(dir: &Path) -> bool {
    let [one, other] = ["one", "other"].map(|name| File::create_new(dir.join(name)).unwrap());
    rustix::fs::ioctl_ficlone(&other, &one).is_ok()
}

#[test]
fn memory() {
    let memory = Memory::new(MemoryOptions::default()).unwrap();
    check("memory", &run(&memory, &cred(0, 0), Needs::ALL));
}

#[test]
fn passthrough() {
    let dir = tempfile::tempdir().unwrap();
    let fs = Passthrough::open(dir.path(), PassthroughOptions::default()).unwrap();
    let has = needs_met(&fs, dir.path());
    // The cases run in a separate thread, because the thread takes on the callers' ids.
    let report = thread::scope(|scope| scope.spawn(|| run(&fs, &server(), has)).join()).unwrap();
    check("passthrough", &report);
}

/// Runs this program again as nobody: without privilege there are no kernel handles, and all
/// callers have the ids of the server.
#[test]
fn passthrough_of_an_ordinary_user() {
    const NOBODY: u32 = 65_534;
    if !server().is_root() {
        println!("skipped: needs root to become somebody else; the test `passthrough` covers it");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("conformance");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(program)
        .args(["--exact", "passthrough", "--nocapture"])
        .current_dir("/")
        .env_remove("TMPDIR")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("passthrough: ") && said.contains(" 0 failed"), "{said}");
    println!("{said}");
}

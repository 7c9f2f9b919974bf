//! A file system of a server does what an `Fs` must do.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod served;

use comity_conformance::{Needs, Report, run};
use comity_remote::NfsVersion;
use served::{TestServer, options, root};

fn check(what: &str, report: &Report) {
    println!("{what}: {report}");
    assert!(report.failed.is_empty(), "{what}: {report}");
}

fn over(version: NfsVersion, has: Needs) {
    let server = TestServer::start();
    let mut options = options("conformance");
    options.versions = (version, version);
    let mounted = server.mount(options);
    assert_eq!(mounted.version, version);
    check(&format!("{version:?}"), &run(&*mounted.fs, &root(), has));
}

#[test]
fn version_4_2() {
    over(NfsVersion::FourTwo, Needs::ALL.without(Needs::ACLS));
}

#[test]
fn version_4_1() {
    let lacks = [
        Needs::ACLS,
        Needs::XATTRS,
        Needs::SEEK,
        Needs::ALLOCATE,
        Needs::DEALLOCATE,
        Needs::COPY,
        Needs::CLONE,
    ];
    over(NfsVersion::FourOne, lacks.into_iter().fold(Needs::ALL, Needs::without));
}

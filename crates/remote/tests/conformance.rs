//! The file system of a server behaves as an `Fs` must.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod served;

use comity_conformance::{Needs, Report, run};
use comity_remote::NfsVersion;
use comity_vfs::{Create, ReadInto};
use served::{TestServer, TestSettings, mode, name, options, root};

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

#[test]
fn version_3() {
    let lacks = [
        Needs::ACLS,
        Needs::XATTRS,
        Needs::SEEK,
        Needs::ALLOCATE,
        Needs::DEALLOCATE,
        Needs::COPY,
        Needs::CLONE,
        Needs::EARLY_TIMES,
    ];
    over(NfsVersion::Three, lacks.into_iter().fold(Needs::ALL, Needs::without));
}

/// Each server adds to the names of objects, so that they finally have more bytes than a handle.
#[test]
fn a_server_of_a_server_names_objects_by_many_bytes() {
    let first = TestServer::start();
    let second = TestServer::over(first.mount(options("first")).fs, TestSettings::default());
    let fs = second.mount(options("second")).fs;
    let cred = root();
    let top = fs.root();
    let how = Create::Guarded(mode(0o640));
    let made = fs.create(&cred, &top, name("f"), &how).unwrap().value;
    let (dir, length) = (fs.mkdir(&cred, &top, name("d"), &mode(0o755)).unwrap().value, 17);
    assert_eq!(dir.handle.bytes().len(), length, "a digest replaces the name");
    fs.write(&cred, &made.handle, 0, b"far away").unwrap();
    fs.commit(&made.handle).unwrap();
    fs.rename(&cred, (&top, name("f")), (&dir.handle, name("g"))).unwrap();
    let found = fs.lookup(&cred, &dir.handle, name("g")).unwrap().node;
    assert_eq!(found.handle, made.handle);
    let mut bytes = Vec::new();
    fs.read(&cred, &found.handle, 0, 100, &mut ReadInto::new(&mut bytes)).unwrap();
    assert_eq!(bytes, b"far away");
}

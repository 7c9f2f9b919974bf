//! A placement does what an `Fs` must do.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use comity_backend::{Passthrough, PassthroughOptions};
use comity_conformance::{Needs, Report, run};
use comity_vfs::{Cred, Gid, Uid};
use common::{World, memory, root};
use rustix::process::{getegid, geteuid};

fn check(what: &str, report: &Report) {
    println!("{what}: {report}");
    assert!(report.failed.is_empty(), "{what}: {report}");
}

/// The verbs that need all bytes of a file in one file system.
const LACKING: [Needs; 5] =
    [Needs::SEEK, Needs::ALLOCATE, Needs::DEALLOCATE, Needs::COPY, Needs::CLONE];

fn has() -> Needs {
    LACKING.into_iter().fold(Needs::ALL, Needs::without)
}

#[test]
fn stripes_in_memory() {
    check("memory", &run(&World::in_memory(3).placed, &root(), has()));
}

#[test]
fn mirrors_in_memory() {
    let stores = (0..3).map(|_| memory()).collect();
    check("mirrors", &run(&World::mirrored(memory(), stores).placed, &root(), has()));
}

#[test]
fn mirrors_in_memory_one_of_which_does_not_answer() {
    let world = World::mirrored(memory(), vec![memory(), memory()]);
    world.stores[1].is_down.store(true, Ordering::Relaxed);
    check("mirrors", &run(&world.placed, &root(), has()));
}

#[test]
fn stripes_in_folders() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let options = PassthroughOptions::default;
    let [mds, one, two] =
        folders.each_ref().map(|it| Arc::new(Passthrough::open(it.path(), options()).unwrap()));
    let capabilities = mds.capabilities();
    let lacking = [
        (capabilities.caller_identities, Needs::IDENTITIES.and(Needs::DEVICES)),
        (capabilities.still_links, Needs::STILL_LINKS),
    ];
    let lacking = lacking.into_iter().filter(|(present, _)| !present);
    let has = lacking.fold(has(), |has, (_, needs)| has.without(needs));
    let world = World::over(mds, vec![one, two]);
    // The cases run in a separate thread, because the thread takes on the callers' ids.
    let owner = Cred::new(Uid::new(geteuid().as_raw()), Gid::new(getegid().as_raw()));
    let cases = || run(&world.placed, &owner, has);
    let report = thread::scope(|scope| scope.spawn(cases).join()).unwrap();
    check("folders", &report);
}

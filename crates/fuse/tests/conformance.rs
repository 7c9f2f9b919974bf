//! The conformance cases, run by the passthrough over a mount.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use comity_backend::{Passthrough, PassthroughOptions};
use comity_conformance::{Needs, run};
use comity_vfs::{Cred, Fs, Gid, Uid};

use comity_cache::WriteMode;
use comity_fuse::Options;
use common::open_files::WithOpens;
use common::{cached, can_mount, kept, memory, mount_with, options, passthrough};

/// Blocks cannot be shared through FUSE: it has no such request.
const LACKING: Needs = Needs::CLONE;

/// The kernel may cache replies for `time`.
fn check(what: &str, fs: Arc<dyn Fs>, time: Duration, kernel_judges: bool) {
    // The client keeps files open. Without opens in the lower layer, each removed file would leave
    // a hidden name.
    let fs = WithOpens::new(fs);
    let options = Options { kernel_judges, ..options() };
    let mounted = mount_with(fs, kept(time), &options);
    let client = Passthrough::open(&mounted.dir, PassthroughOptions::default()).unwrap();
    let has = Needs::ALL.without(LACKING);
    let root = Cred::new(Uid::new(0), Gid::new(0));
    // The cases run in a separate thread, because the thread switches to the callers' ids.
    let report = thread::scope(|scope| scope.spawn(|| run(&client, &root, has)).join()).unwrap();
    println!("{what}: {report}");
    assert!(report.failed.is_empty(), "{what}: {report}");
}

#[test]
fn memory_through_a_mount_is_an_fs() {
    if can_mount() {
        check("memory", memory(), Duration::ZERO, false);
    }
}

#[test]
fn a_folder_is_an_fs_where_the_kernel_keeps_and_judges() {
    if can_mount() {
        let folder = tempfile::tempdir().unwrap();
        check("passthrough, kept", passthrough(folder.path()), Duration::from_secs(60), true);
    }
}

#[test]
fn a_cache_through_a_mount_is_an_fs() {
    if can_mount() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cached(WithOpens::new(memory()), folder.path(), WriteMode::Memory);
        check("cache", cache, Duration::from_secs(60), true);
    }
}

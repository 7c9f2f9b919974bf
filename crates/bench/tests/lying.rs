//! A target that returns wrong data, fills up or goes away ends the run with a clear error, and the
//! earlier results are kept.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::path::Path;
use std::process::Command;

use comity_bench::suite::SuiteOutcome;
use common::watched::{Lie, Watched};
use common::{chosen, names, plan, run};
use tempfile::TempDir;

/// Runs two workloads on a target that misbehaves. The first workload ends before it does.
fn caught(lie: Lie, second: &str) -> (String, SuiteOutcome, TempDir) {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = Watched::new(place.path(), lie);
    let workloads = vec![chosen("lsr", &[]), chosen(second, &[])];
    let (ran, outcome) = run(&plan(workloads, output.path()), Box::new(target));
    (ran.unwrap_err(), outcome, place)
}

fn is_kept(outcome: &SuiteOutcome, failed: &str, message: &str) {
    assert!(!outcome.complete);
    assert!(outcome.workloads[0].rounds[0].complete, "the first workload is lost");
    assert!(!outcome.workloads[0].rounds[0].samples.is_empty());
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!(failure.workload, failed);
    assert!(failure.message.contains(message), "{}", failure.message);
}

#[test]
fn wrong_data_fails_the_run() {
    for workload in ["postmark", "nfsstone", "grep", "bonnie", "andrew"] {
        let (error, outcome, place) = caught(Lie::WrongData(3), workload);
        assert!(error.contains("wrong data, byte"), "{workload}: {error}");
        is_kept(&outcome, workload, "wrong data");
        assert_eq!(names(place.path()), Vec::<String>::new());
    }
}

#[test]
fn short_reads_fail_the_run() {
    let (error, outcome, _) = caught(Lie::ShortReads(3), "postmark");
    assert!(error.contains("bytes, all were written"), "{error}");
    is_kept(&outcome, "postmark", "READ of");
}

#[test]
fn the_error_of_a_full_target_names_the_failed_operation() {
    let (error, outcome, place) = caught(Lie::Full(60), "postmark");
    assert!(error.contains("WRITE of") && error.contains("No space left"), "{error}");
    is_kept(&outcome, "postmark", "No space left");
    assert_eq!(names(place.path()), Vec::<String>::new());
}

#[test]
fn a_sync_that_keeps_nothing_is_found_before_anything_is_measured() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = Watched::new(place.path(), Lie::Forgets);
    let plan = plan(vec![chosen("lsr", &[])], output.path());
    let (ran, outcome) = run(&plan, Box::new(target));
    let error = ran.unwrap_err();
    assert!(error.contains("fsync lies"), "{error}");
    assert!(outcome.workloads[0].rounds.is_empty());
    assert_eq!(names(place.path()), Vec::<String>::new());
}

#[test]
fn an_interrupted_run_is_kept_and_can_be_continued() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut plan = plan(vec![chosen("lsr", &[]), chosen("postmark", &[])], output.path());
    let target = Watched::new(place.path(), Lie::Interrupted(1000));
    let interrupt = comity_bench::suite::Interrupt::default();
    let set = interrupt.clone();
    *target.shared().event.lock().unwrap() = Some(Box::new(move || set.set()));
    let content = std::sync::Arc::new(comity_bench::suite::Content::new(1));
    let ran = comity_bench::runner::run_on(&plan, vec![Box::new(target)], content, &interrupt);
    assert!(comity_bench::runner::is_interrupt(&ran.unwrap_err()));
    let before = comity_bench::suite::Store::read(output.path()).unwrap();
    is_kept(&before, "postmark", "interrupted");
    assert_eq!(names(place.path()), Vec::<String>::new());

    plan.resume = true;
    let (ran, after) = run(&plan, Box::new(Watched::new(place.path(), Lie::None)));
    ran.unwrap();
    assert!(after.complete && after.failure.is_none());
    assert_eq!(after.workloads[0], before.workloads[0], "a finished workload was measured again");
    assert!(after.workloads[1].rounds[0].complete);
    plan.seed = 2;
    let (ran, _) = run(&plan, Box::new(Watched::new(place.path(), Lie::None)));
    assert!(ran.unwrap_err().contains("was begun with --seed 1"));
}

#[test]
fn a_full_disk_fails_the_run() {
    let Some(place) = Tmpfs::mount("size=256k") else { return };
    let output = tempfile::tempdir().unwrap();
    let target = Watched::new(place.path(), Lie::None);
    let plan = plan(vec![chosen("lsr", &[]), chosen("bonnie", &[])], output.path());
    let (ran, outcome) = run(&plan, Box::new(target));
    assert!(ran.unwrap_err().contains("No space left"));
    is_kept(&outcome, "bonnie", "No space left");
    assert_eq!(names(place.path()), Vec::<String>::new());
}

#[test]
fn a_target_that_is_unmounted_during_a_run_is_noticed() {
    let Some(place) = Tmpfs::mount("size=16m") else { return };
    let output = tempfile::tempdir().unwrap();
    let target = Watched::new(place.path(), Lie::Unmounted(1000));
    let path = place.path().to_path_buf();
    *target.shared().event.lock().unwrap() = Some(Box::new(move || {
        assert!(Command::new("umount").arg("-l").arg(path).status().unwrap().success());
    }));
    let plan = plan(vec![chosen("lsr", &[]), chosen("postmark", &[])], output.path());
    let (ran, outcome) = run(&plan, Box::new(target));
    let error = ran.unwrap_err();
    assert!(error.contains("was it unmounted?"), "{error}");
    is_kept(&outcome, "postmark", "was it unmounted?");
}

/// A file system in memory, unmounted when this is dropped.
struct Tmpfs(TempDir);

impl Tmpfs {
    fn mount(options: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: mounting takes root");
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(place.path())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            eprintln!("skipped: this root may not mount");
            return None;
        }
        Some(Self(place))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

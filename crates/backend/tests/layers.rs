//! Layers pass every call on, except for the ones that they change.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_conformance::{Fixture, Needs, run};
use comity_vfs::layers::{Faults, Hook, Layer, Metrics, ReadOnly, Recorder, Verb, When};
use comity_vfs::{
    Access, Create, Cred, Disk, Fs, Gid, Handle, Mode, Name, ReadInto, Result, SetAttr, Status, Uid,
};

fn root() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}

fn memory() -> Arc<Memory> {
    Arc::new(Memory::new(MemoryOptions::default()).unwrap())
}

fn create(fs: &dyn Fs, name: &str) -> Result<Handle> {
    let how = Create::Guarded(SetAttr { mode: Some(Mode::new(0o644)), ..SetAttr::default() });
    let name = Name::new(name.as_bytes())?;
    fs.create(&root(), &fs.root(), name, &how).map(|made| made.value.handle)
}

fn write(fs: &dyn Fs, file: &Handle, data: &[u8]) -> Result<u32> {
    fs.write(&root(), file, 0, data).map(|written| written.value)
}

fn conforms(hook: impl Hook) {
    let report = run(&Layer::new(memory(), hook), &root(), Needs::ALL);
    assert!(report.failed.is_empty() && report.skipped.is_empty(), "{report}");
}

#[test]
fn a_layer_that_does_nothing_changes_nothing() {
    conforms(Faults::new(0));
    conforms(Recorder::default());
    conforms(Metrics::default());
}

#[test]
fn a_case_fails_where_the_file_system_does() {
    let faults = Faults::new(0).fail(Verb::Commit, Status::Io, When::Always);
    let report = run(&Layer::new(memory(), faults), &root(), Needs::ALL);
    let named = |case: &str| report.failed.iter().any(|(name, _)| *name == case);
    assert!(named("data/commit_tells_the_attributes"), "{report}");
    assert!(!named("data/written_data_is_read"), "{report}");
    assert!(report.to_string().contains("input/output error (Io) (data.rs:"), "{report}");
}

#[test]
fn read_only_refuses_each_change_with_its_own_status() {
    let below = memory();
    let file = create(&*below, "a").unwrap();
    write(&*below, &file, b"data").unwrap();
    let fs = Layer::new(below.clone(), ReadOnly);
    assert_eq!(create(&fs, "b"), Err(Status::RoFs));
    assert_eq!(write(&fs, &file, b"x"), Err(Status::RoFs));
    assert_eq!(fs.write_opened(&root(), &file, 0, b"x"), Err(Status::RoFs));
    let (root, name) = (root(), Name::new(b"a").unwrap());
    assert_eq!(fs.remove(&root, &fs.root(), name), Err(Status::RoFs));
    assert_eq!(Fixture::new(&fs, root.clone(), "case").err().map(|_| ()), Some(()));
    let granted = fs.access(&root, &fs.root(), Access::ALL).unwrap().0;
    assert_eq!(granted, Access::READ | Access::LOOKUP);
    let mut bytes = Vec::new();
    let mut into = ReadInto::new(&mut bytes);
    fs.read(&root, &file, 0, 9, &mut into).unwrap();
    assert_eq!(bytes, b"data");
    assert_eq!(below.getattr(&file), fs.getattr(&file));
}

#[test]
fn faults_come_at_the_calls_that_were_chosen() {
    let faults = Faults::new(0).fail(Verb::Create, Status::NoSpc, When::Once(2)).fail(
        Verb::Commit,
        Status::Io,
        When::From(3),
    );
    let faults = Arc::new(faults);
    let fs = Layer::new(memory(), Arc::clone(&faults));
    let made: Vec<_> = ["a", "b", "c"].map(|name| create(&fs, name).map(drop)).into();
    assert_eq!(made, [Ok(()), Err(Status::NoSpc), Ok(())]);
    let commits = || [(); 2].map(|()| fs.commit(&fs.root()).map(drop));
    assert_eq!(commits(), [Ok(()), Ok(())]);
    assert_eq!(commits(), [Err(Status::Io), Err(Status::Io)]);
    faults.set_active(false);
    assert_eq!(commits(), [Ok(()), Ok(())]);
}

#[test]
fn a_short_write_writes_only_a_part_of_its_data() {
    let outcome = |seed| {
        let fs = Layer::new(memory(), Faults::new(seed).short_writes(500));
        let file = create(&fs, "a").unwrap();
        (0..100).map(|_| write(&fs, &file, &[7; 1000]).unwrap()).collect::<Vec<_>>()
    };
    let counts = outcome(1);
    assert_eq!(counts, outcome(1), "one seed, one outcome");
    assert_ne!(counts, outcome(2));
    assert!(counts.iter().all(|count| (1..=1000).contains(count)));
    let short = counts.iter().filter(|count| **count < 1000).count();
    assert!((25..75).contains(&short), "{short} of 100 were short");
}

#[test]
fn the_recorder_has_the_calls_in_their_order() {
    let recorder = Arc::new(Recorder::default());
    let fs = Layer::new(memory(), Arc::clone(&recorder));
    let file = create(&fs, "a").unwrap();
    write(&fs, &file, b"data").unwrap();
    fs.commit(&file).unwrap();
    assert_eq!(create(&fs, "a"), Err(Status::Exist));
    let events = recorder.take();
    let verbs: Vec<_> = events.iter().map(|event| (event.verb, event.failure)).collect();
    let (create, exist) = ((Verb::Create, None), (Verb::Create, Some(Status::Exist)));
    assert_eq!(verbs, [create, (Verb::Write, None), (Verb::Commit, None), exist]);
    assert_eq!([events[0].node, events[1].node, events[2].node], [fs.root(), file, file]);
    assert_eq!(recorder.take(), []);
}

#[test]
fn metrics_count_every_verb() {
    let metrics = Arc::new(Metrics::default());
    let fs = Layer::new(memory(), Arc::clone(&metrics));
    let report = run(&fs, &root(), Needs::ALL);
    assert!(report.failed.is_empty(), "{report}");
    for verb in Verb::ALL {
        let sample = metrics.sample(verb);
        assert!(sample.calls > 0 && !sample.total.is_zero(), "{}: {sample:?}", verb.name());
        assert_eq!(Verb::ALL.iter().position(|one| *one == verb), Some(verb as usize));
    }
}

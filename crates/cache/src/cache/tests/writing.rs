use std::sync::Arc;
use std::sync::atomic::Ordering;

use comity_vfs::layers::Verb;
use comity_vfs::{DelegationKind, Fs, Handle, OpenId, Status};
use proptest::prelude::*;

use super::{World, name, open, read, root, unlock, until};
use crate::limits::DIRTY_BYTES_MAX;
use crate::options::{AttributeTimes, CacheOptions, WriteMode};

fn world(write: WriteMode) -> World {
    World::new(CacheOptions { write, ..CacheOptions::default() })
}

/// Files in the folder for conflicts.
fn conflicts(world: &World) -> Vec<String> {
    let names = world.medium.names().into_iter();
    names.filter(|name| name.starts_with("conflicts/") && !name.ends_with("/handle")).collect()
}

#[test]
fn small_appends_are_written_together() {
    let world = world(WriteMode::Memory);
    let file = world.file("log", b"");
    for number in 0..2_000 {
        world.write(&file, number * 50, &[1 + (number % 100) as u8; 50]);
    }
    assert_eq!(world.calls(Verb::Write), 0, "nothing is written yet");
    assert_eq!(world.read(&file).len(), 100_000);
    assert_eq!(world.cache.getattr(&file).unwrap().size, 100_000);
    world.cache.commit(&file).unwrap();
    assert_eq!((world.calls(Verb::Write), world.calls(Verb::Commit)), (1, 1));
    assert_eq!(world.seen(&file), world.read(&file));
    assert_eq!(world.calls(Verb::Read), 0, "own data is in the cache");
}

#[test]
fn a_single_piece_is_sent_as_stable_if_one_call_carries_it() {
    for (bytes_max, commits) in [(1_000, 0), (999, 1)] {
        let world = world(WriteMode::Memory);
        *world.below.stable_bytes_max.lock().unwrap() = Some(bytes_max);
        let file = world.file("file", b"");
        world.write(&file, 0, &[7; 1_000]);
        world.cache.commit(&file).unwrap();
        assert_eq!(world.below.stable_writes.load(Ordering::SeqCst), 1);
        assert_eq!(world.calls(Verb::Commit), commits, "{bytes_max} bytes at once");
        assert_eq!(world.seen(&file), [7; 1_000]);
    }
}

#[test]
fn written_data_of_a_cache_that_adds_nothing_is_read_from_below() {
    let options =
        CacheOptions { write: WriteMode::Memory, fills: false, ..CacheOptions::default() };
    let world = World::new(options);
    let file = world.file("file", b"");
    world.write(&file, 0, b"data");
    world.cache.commit(&file).unwrap();
    assert_eq!(world.read(&file), b"data");
    assert_eq!(world.calls(Verb::Read), 1);
}

#[test]
fn a_file_that_is_appended_to_is_not_read_again() {
    let world = world(WriteMode::Memory);
    let file = world.file("log", &[7; 10_000]);
    world.read(&file);
    let reads = world.calls(Verb::Read);
    for number in 0..100_u64 {
        world.write(&file, 10_000 + number * 10, &[8; 10]);
        assert_eq!(world.read(&file).len() as u64, 10_010 + number * 10);
    }
    world.cache.commit(&file).unwrap();
    assert_eq!(world.read(&file).len(), 11_000);
    assert_eq!(world.calls(Verb::Read), reads);
}

#[test]
fn data_that_waits_is_sent_after_a_time() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"");
    world.write(&file, 0, b"data");
    world.pass(1_000);
    world.cache.tick();
    assert_eq!(world.seen(&file), b"");
    assert_eq!(world.cache.status().dirty_age_milliseconds, 1_000);
    world.pass(10_000);
    world.cache.tick();
    assert_eq!(world.seen(&file), b"data");
    let status = world.cache.status();
    assert_eq!((status.dirty_bytes, status.dirty_age_milliseconds), (0, 0));
}

/// A regression test for rclone issue 4293.
#[test]
fn written_data_is_there_after_the_end_of_the_process() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"");
    world.write(&file, 0, b"data");
    let world = world.again();
    assert_eq!(world.seen(&file), b"data");
}

#[test]
fn the_memory_for_unsent_data_is_bounded() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"");
    let piece = vec![1; 1 << 20];
    for number in 0..2 * DIRTY_BYTES_MAX / (1 << 20) {
        world.write(&file, number << 20, &piece);
        assert!(world.cache.status().dirty_bytes <= DIRTY_BYTES_MAX + (1 << 20));
    }
}

#[test]
fn the_memory_for_unsent_data_is_bounded_while_the_server_is_unreachable() {
    let options =
        CacheOptions { write: WriteMode::Memory, offline: true, ..CacheOptions::default() };
    let world = World::new(options);
    let files = [world.file("one", b""), world.file("two", b"")];
    files.iter().for_each(|file| world.write(file, 0, b"data"));
    world.below.cut();
    let piece = vec![1; 1 << 20];
    let write = |file, number| {
        let written = world.cache.write(&root(), file, number << 20, &piece);
        written.map(|written| written.value)
    };
    let most = DIRTY_BYTES_MAX / (1 << 20);
    let answered = (0..2 * most).filter(|number| write(&files[0], *number).is_ok()).count();
    assert_eq!(answered as u64, most - 1, "the first data needs some bytes");
    assert_eq!(write(&files[0], 0), Err(Status::Io));
    assert_eq!(write(&files[1], 0), Err(Status::Io), "another file");
    assert!(world.cache.status().dirty_bytes <= DIRTY_BYTES_MAX);
    world.below.mend();
    assert_eq!(write(&files[0], most), Ok(1 << 20));
}

#[test]
fn a_failed_write_is_reported_once_and_kept_as_a_conflict() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"old");
    world.write(&file, 0, b"new data");
    let fs = world.below.others();
    fs.remove(&root(), &fs.root(), name("file")).unwrap();
    assert_eq!(world.cache.commit(&file), Err(Status::Stale));
    assert_eq!(conflicts(&world).len(), 1);
    assert_eq!(world.cache.status().conflicts, 1);
}

#[test]
fn a_write_that_fails_while_room_is_made_is_reported_to_the_next_flush() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"old");
    let piece = vec![1; 1 << 20];
    world.write(&file, 0, &piece);
    let fs = world.below.others();
    fs.remove(&root(), &fs.root(), name("file")).unwrap();
    for number in 1..=DIRTY_BYTES_MAX / (1 << 20) {
        world.write(&file, number << 20, &piece);
    }
    assert_eq!(world.cache.status().conflicts, 1, "room was made");
    assert_eq!(world.cache.commit_below(&file), Err(Status::Stale));
    assert_eq!(world.cache.flush(&file), Ok(()), "nothing is unsent");
}

#[test]
fn data_stays_unsent_while_the_server_is_unreachable() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"old");
    world.write(&file, 0, b"new");
    world.below.cut();
    assert_eq!(world.cache.commit(&file), Err(Status::Io));
    world.pass(60_000);
    world.cache.tick();
    assert_eq!(world.cache.status().dirty_bytes, 3);
    world.below.mend();
    world.cache.commit(&file).unwrap();
    assert_eq!(world.seen(&file), b"new");
    assert!(conflicts(&world).is_empty());
}

#[test]
fn a_caller_without_rights_is_refused_at_once() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"data");
    let written = world.cache.write(&super::cred(7), &file, 0, b"x");
    assert_eq!(written.map(|written| written.value), Err(Status::Acces));
}

#[test]
fn a_revoked_delegation_with_data_ends_in_a_conflict_and_not_in_loss() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"old");
    open(&world, &file);
    world.write(&file, 0, b"ours");
    world.change(&file, 0, b"theirs");
    world.below.revoke(&file);
    world.cache.open_files().unwrap().poll_event(Default::default()).unwrap();
    assert_eq!(world.cache.commit(&file), Err(Status::Stale));
    assert_eq!(world.seen(&file), b"theirs");
    assert_eq!(conflicts(&world).len(), 1);
    let mut kept = [0; 4];
    let medium: &dyn crate::medium::Medium = world.medium.as_ref();
    medium.read(&conflicts(&world)[0], 0, &mut kept).unwrap();
    assert_eq!(&kept, b"ours");
    assert_eq!(world.read(&file), b"theirs");
}

#[test]
fn a_revoked_delegation_of_a_file_that_nobody_changed_loses_nothing() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"old");
    open(&world, &file);
    world.write(&file, 0, b"ours");
    world.below.revoke(&file);
    world.cache.open_files().unwrap().poll_event(Default::default()).unwrap();
    world.cache.commit(&file).unwrap();
    assert_eq!(world.seen(&file), b"ours");
    assert!(conflicts(&world).is_empty());
}

#[test]
fn a_delegation_is_returned_after_the_data() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"old");
    open(&world, &file);
    world.write(&file, 0, b"ours");
    assert_eq!(*world.below.unwritten.lock().unwrap(), [Some(4)], "the server may ask for it");
    world.cache.open_files().unwrap().return_delegation(&file).unwrap();
    assert_eq!(world.seen(&file), b"ours");
    assert_eq!(*world.below.unwritten.lock().unwrap(), [Some(4), None]);
    assert_eq!(*world.below.returned.lock().unwrap(), [file]);
}

#[test]
fn the_journal_recovers_writes_from_before_a_kill() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"old data");
    world.write(&file, 0, b"new");
    world.write(&file, 20, b"far");
    let world = world.killed();
    let mut expected = b"new data".to_vec();
    expected.resize(20, 0);
    expected.extend_from_slice(b"far");
    assert_eq!(world.seen(&file), expected);
    assert_eq!(world.read(&file), expected);
    let writes = world.calls(Verb::Write);
    let world = world.killed();
    assert_eq!(world.calls(Verb::Write), writes, "the data is sent only once");
}

#[test]
fn a_write_longer_than_a_record_comes_back_after_a_kill() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"");
    let long = vec![7; crate::limits::RECORD_BYTES_MAX as usize + 10];
    world.write(&file, 3, &long);
    world.write(&file, 0, b"abc");
    let world = world.killed();
    let seen = world.seen(&file);
    assert!(seen.starts_with(b"abc") && seen[3..] == long, "{} bytes", seen.len());
}

#[test]
fn two_conflicts_of_one_moment_are_both_kept() {
    let world = world(WriteMode::Memory);
    let files = [world.file("one", b"old"), world.file("two", b"old")];
    for file in &files {
        open(&world, file);
        world.write(file, 0, b"ours");
        world.change(file, 0, b"theirs");
        world.below.revoke(file);
        world.cache.open_files().unwrap().poll_event(Default::default()).unwrap();
    }
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| assert_eq!(world.cache.commit(file), Err(Status::Stale)));
        }
    });
    let folders: std::collections::HashSet<_> =
        conflicts(&world).iter().map(|path| path.rsplit_once('/').unwrap().0.to_owned()).collect();
    assert_eq!(folders.len(), 2);
}

#[test]
fn data_that_arrived_before_a_kill_is_not_a_conflict() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"old data");
    world.write(&file, 0, b"new");
    // The data is sent, but the process is killed before the journal notes it.
    world.change(&file, 0, b"new");
    let world = world.killed();
    assert!(conflicts(&world).is_empty());
    assert_eq!(world.seen(&file), b"new data");
}

#[test]
fn a_file_that_others_changed_is_not_overwritten_after_a_kill() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"old data");
    world.write(&file, 0, b"ours");
    world.change(&file, 0, b"theirs");
    let world = world.killed();
    assert_eq!(world.seen(&file), b"theirsta");
    assert_eq!(conflicts(&world).len(), 1);
    let world = world.killed();
    assert_eq!(conflicts(&world).len(), 1, "the conflict is kept only once");
}

#[test]
fn under_a_delegation_a_commit_needs_only_the_journal() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"old data");
    open(&world, &file);
    world.write(&file, 0, b"new");
    let before = world.all_calls();
    world.cache.commit(&file).unwrap();
    assert_eq!(world.all_calls(), before);
    let world = world.killed();
    assert_eq!(world.seen(&file), b"new data");
}

/// The first check does not hold for the pieces after it.
#[test]
fn each_piece_of_recovered_data_is_checked() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"oldoldoldold");
    world.write(&file, 0, b"one");
    world.write(&file, 9, b"two");
    let world = world.killed_and(|below| {
        let mut count = 0;
        below.mend();
        below.before(move |verb| {
            count += u32::from(verb == Verb::Write);
            if verb == Verb::Write && count == 2 { Err(Status::Io) } else { Ok(()) }
        });
    });
    assert_eq!(world.seen(&file), b"oneoldoldold");
    world.change(&file, 6, b"theirs");
    world.pass(60_000);
    world.cache.tick();
    assert_eq!(world.seen(&file), b"oneoldtheirs");
    assert!(!conflicts(&world).is_empty());
}

/// A program that writes more than the bound of unsent data has its file sent in between.
#[test]
fn data_behind_the_bound_of_unsent_data_comes_back_after_a_kill() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"");
    open(&world, &file);
    let piece = vec![1; 1 << 20];
    let count = DIRTY_BYTES_MAX / (1 << 20) + 1;
    (0..count).for_each(|number| world.write(&file, number << 20, &piece));
    assert!(world.cache.status().dirty_bytes < DIRTY_BYTES_MAX, "some was sent");
    world.write(&file, 0, b"head");
    world.cache.commit(&file).unwrap();
    let world = world.killed();
    assert!(conflicts(&world).is_empty());
    let seen = world.seen(&file);
    assert!(seen.starts_with(b"head\x01") && seen.len() as u64 == count << 20, "{}", seen.len());
}

/// Programs replace a file at once by writing another one and renaming it.
#[test]
fn a_file_that_was_written_and_renamed_comes_back_after_a_kill() {
    type Act = fn(&World, &Handle);
    let acts: [Act; 3] = [
        |world, _| {
            let top = world.cache.root();
            world.cache.rename(&root(), (&top, name("file")), (&top, name("final"))).unwrap();
        },
        |world, file| {
            let top = world.cache.root();
            world.cache.link(&root(), file, &top, name("final")).unwrap();
        },
        |world, file| {
            let how = comity_vfs::XattrMode::Either;
            world.cache.setxattr(&root(), file, name("x"), Some(b"value"), how).unwrap();
        },
    ];
    for act in acts {
        let world = world(WriteMode::Journal);
        let file = world.file("file", b"");
        open(&world, &file);
        world.write(&file, 0, b"whole");
        world.cache.commit(&file).unwrap();
        act(&world, &file);
        let world = world.killed();
        assert!(conflicts(&world).is_empty());
        assert_eq!(world.seen(&file), b"whole");
    }
}

/// The number of the recovered data in the journal must not cover data that is written later.
#[test]
fn a_write_during_a_late_recovery_is_not_dropped_from_the_journal() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"old data");
    world.write(&file, 0, b"new");
    let world = Arc::new(world.killed_while_cut());
    let (writer, mut is_first) = (Arc::downgrade(&world), true);
    world.below.before(move |verb| {
        if verb == Verb::Write && std::mem::take(&mut is_first) {
            writer.upgrade().unwrap().write(&file, 4, b"DATA");
        }
        Ok(())
    });
    world.cache.commit_below(&file).unwrap();
    world.below.before(|_| Ok(()));
    assert_eq!(world.seen(&file), b"new data", "the later write is unsent");
    let world = Arc::into_inner(world).unwrap().killed();
    assert_eq!(world.seen(&file), b"new DATA");
}

/// Other clients may read a file under a read delegation of their own.
#[test]
fn under_a_read_delegation_a_commit_and_an_unlock_send_the_data() {
    type Work = fn(&World, OpenId, &Handle);
    let works: [Work; 2] = [
        |world, _, file| assert!(world.cache.commit(file).is_ok()),
        |world, open, _| assert_eq!(unlock(world, open), Ok(())),
    ];
    for work in works {
        let world = world(WriteMode::Journal);
        let file = world.file("file", b"old data");
        *world.below.kind.lock().unwrap() = DelegationKind::Read;
        let opened = open(&world, &file);
        world.write(&file, 0, b"new");
        work(&world, opened.open, &file);
        assert_eq!(world.seen(&file), b"new data");
    }
}

#[test]
fn readers_do_not_wait_for_the_journal() {
    let world = &world(WriteMode::Journal);
    let file = world.file("file", b"old data");
    let begun = world.medium.syncs_begun();
    let held = world.medium.hold_syncs();
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| world.write(&file, 0, b"new"));
        until("the journal is written", || world.medium.syncs_begun() > begun);
        scope.spawn(|| told.send(world.read(&file)));
        let read = heard.recv_timeout(std::time::Duration::from_secs(10));
        drop(held);
        assert_eq!(read, Ok(b"old data".to_vec()));
    });
    assert_eq!(world.read(&file), b"new data");
}

#[test]
fn without_a_journal_disk_writes_go_through() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"old data");
    world.cache.getattr(&file).unwrap();
    world.medium.fail_after(0);
    world.write(&file, 0, b"new");
    assert_eq!(world.seen(&file), b"new data");
}

/// A step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Write(u8, u64, usize),
    Read(u64, u32),
    Cut(u64),
    Commit,
    Other(u8, u64, usize),
    Pass(u64),
    Tick,
    Again,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    let (at, length) = (0_u64..30_000, 1_usize..9_000);
    prop_oneof![
        4 => (1_u8.., at.clone(), length.clone()).prop_map(|(b, at, n)| Step::Write(b, at, n)),
        4 => (at.clone(), 1_u32..9_000).prop_map(|(at, count)| Step::Read(at, count)),
        1 => at.clone().prop_map(Step::Cut),
        2 => Just(Step::Commit),
        1 => (1_u8.., at, length).prop_map(|(b, at, n)| Step::Other(b, at, n)),
        2 => (0_u64..20_000).prop_map(Step::Pass),
        2 => Just(Step::Tick),
        1 => Just(Step::Again),
        1 => Just(Step::Kill),
    ]
}

fn put(model: &mut Vec<u8>, at: u64, data: &[u8]) {
    let end = at as usize + data.len();
    if model.len() < end {
        model.resize(end, 0);
    }
    model[at as usize..end].copy_from_slice(data);
}

/// One client with a cache, and another that changes the file while the cache has no unsent data:
/// the file must at all times contain what both have written.
fn run(write: WriteMode, steps: Vec<Step>) {
    let options = CacheOptions { write, times: AttributeTimes::NONE, ..CacheOptions::default() };
    let mut world = World::new(options);
    let file = world.file("file", b"");
    let mut model = Vec::new();
    for step in steps {
        match step {
            Step::Write(byte, at, length) => {
                world.write(&file, at, &vec![byte; length]);
                put(&mut model, at, &vec![byte; length]);
            }
            Step::Read(at, count) => {
                let mut bytes = Vec::new();
                let mut into = comity_vfs::ReadInto::new(&mut bytes);
                let read = world.cache.read(&root(), &file, at, count, &mut into).unwrap();
                let start = (at as usize).min(model.len());
                let end = (start + count as usize).min(model.len());
                assert!(bytes == model[start..end], "at {at}, {count} bytes");
                assert_eq!(read.eof, end == model.len());
            }
            Step::Cut(size) => {
                let set = comity_vfs::SetAttr { size: Some(size), ..Default::default() };
                world.cache.setattr(&root(), &file, &set, None).unwrap();
                model.resize(size as usize, 0);
            }
            Step::Commit => {
                world.cache.commit(&file).unwrap();
                assert!(world.seen(&file) == model);
            }
            Step::Other(byte, at, length) => {
                world.cache.commit(&file).unwrap();
                world.change(&file, at, &vec![byte; length]);
                put(&mut model, at, &vec![byte; length]);
            }
            Step::Pass(milliseconds) => world.pass(milliseconds),
            Step::Tick => world.cache.tick(),
            Step::Again => world = world.again(),
            Step::Kill if write == WriteMode::Journal => world = world.killed(),
            Step::Kill => {
                world.cache.commit(&file).unwrap();
                world = world.killed();
            }
        }
        assert_eq!(world.cache.getattr(&file).unwrap().size, model.len() as u64);
    }
    assert!(read(&world.cache, &root(), &file).unwrap() == model);
    world.cache.commit(&file).unwrap();
    assert!(world.seen(&file) == model);
    assert!(conflicts(&world).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_file_contains_what_was_written_to_it(steps in prop::collection::vec(step(), 1..40)) {
        for write in [WriteMode::Through, WriteMode::Memory, WriteMode::Journal] {
            run(write, steps.clone());
        }
    }
}

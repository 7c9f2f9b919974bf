//! Data that is lost: each commit that began before, or else the next one, reports it.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use comity_vfs::layers::Verb;
use comity_vfs::{Fs, Handle, Interrupt, Result, Seek, SetAttr, Status};

use super::{World, open, root, unlock, until};
use crate::options::{CacheOptions, WriteMode};

fn world(write: WriteMode) -> World {
    World::new(CacheOptions { write, ..CacheOptions::default() })
}

/// Lets the server have no space for writes.
fn fill_disk(world: &World) {
    world.below.before(|verb| if verb == Verb::Write { Err(Status::NoSpc) } else { Ok(()) });
}

/// Lets the server have space again.
fn free_disk(world: &World) {
    world.below.before(|_| Ok(()));
}

fn commit(world: &World, file: &Handle) -> Result<()> {
    world.cache.commit(file).map(drop)
}

/// Returns whether the server has answered more calls than this number.
fn has_answered(world: &World, before: u64) -> bool {
    world.below.answered.load(Ordering::SeqCst) > before
}

/// Runs `first` until its write was refused by the server, then begins a commit, and lets both end;
/// returns the result of the commit.
fn commit_beside(world: &World, file: &Handle, first: impl FnOnce() + Send) -> Result<()> {
    let held = world.below.answers.lock().unwrap();
    let answered = world.below.answered.load(Ordering::SeqCst);
    thread::scope(|scope| {
        scope.spawn(first);
        until("the server has refused", || has_answered(world, answered));
        let second = scope.spawn(|| commit(world, file));
        until("the commit waits for its turn", || world.cache.dirty.waiting_senders(file) == 1);
        drop(held);
        second.join().unwrap()
    })
}

#[test]
fn both_commits_under_way_report_a_loss() {
    let world = &world(WriteMode::Memory);
    let file = world.file("file", b"");
    world.write(&file, 0, b"data");
    fill_disk(world);
    let second = commit_beside(world, &file, || {
        assert_eq!(commit(world, &file), Err(Status::NoSpc));
    });
    assert_eq!(second, Err(Status::NoSpc));
    assert_eq!(commit(world, &file), Ok(()), "a loss is reported once");
}

#[test]
fn a_commit_reports_a_loss_of_data_that_the_ticker_was_sending() {
    for write in [WriteMode::Memory, WriteMode::Journal] {
        let world = &world(write);
        let file = world.file("file", b"");
        world.write(&file, 0, b"data");
        world.pass(60_000);
        fill_disk(world);
        let second = commit_beside(world, &file, || world.cache.tick());
        assert_eq!(second, Err(Status::NoSpc), "{write:?}");
    }
}

/// The ticker waits for a server that never answers.
#[test]
fn a_program_that_waits_for_the_ticker_can_be_killed() {
    let world = &world(WriteMode::Memory);
    let file = world.file("file", b"");
    world.write(&file, 0, b"data");
    world.pass(60_000);
    let held = world.below.answers.lock().unwrap();
    let answered = world.below.answered.load(Ordering::SeqCst);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| world.cache.tick());
        until("the ticker waits", || has_answered(world, answered));
        scope.spawn(|| {
            let scope = Interrupt::begin();
            scope.interrupt().raise();
            sender.send(commit(world, &file))
        });
        let committed = receiver.recv_timeout(Duration::from_secs(10));
        drop(held);
        assert_eq!(committed, Ok(Err(Status::Interrupted)));
    });
    assert_eq!(world.seen(&file), b"data");
}

#[test]
fn a_commit_of_the_ticker_that_fails_is_reported_by_the_next_commit() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"");
    world.write(&file, 0, b"data");
    world.pass(60_000);
    world.below.before(|verb| if verb == Verb::Commit { Err(Status::NoSpc) } else { Ok(()) });
    world.cache.tick();
    free_disk(&world);
    assert_eq!(commit(&world, &file), Err(Status::NoSpc));
    assert_eq!(commit(&world, &file), Ok(()));
}

/// The file system below tells once that the server has lost data, and not by a final failure.
#[test]
fn a_loss_that_an_unlock_meets_is_reported_by_the_next_commit() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"");
    let opened = open(&world, &file).open;
    world.below.revoke(&file);
    world.write(&file, 0, b"data");
    world.below.before(|verb| if verb == Verb::Commit { Err(Status::Io) } else { Ok(()) });
    assert_eq!(unlock(&world, opened), Ok(()));
    free_disk(&world);
    assert_eq!(commit(&world, &file), Err(Status::Io));
    assert_eq!(commit(&world, &file), Ok(()));
}

#[test]
fn verbs_other_than_commit_leave_a_loss_to_be_reported() {
    type Work = fn(&World, &Handle);
    let works: [(&str, Work); 3] = [
        ("lseek(2)", |world, file| {
            let _ = world.cache.seek(&root(), file, 0, Seek::Data);
        }),
        ("truncate(2)", |world, file| {
            let set = SetAttr { size: Some(100), ..SetAttr::default() };
            let _ = world.cache.setattr(&root(), file, &set, None);
        }),
        ("copy_file_range(2)", |world, file| {
            let _ = world.cache.copy(&root(), (file, 0), (file, 100), 3);
        }),
    ];
    for (name, work) in works {
        let world = world(WriteMode::Memory);
        let file = world.file("file", b"");
        world.write(&file, 0, b"data");
        fill_disk(&world);
        work(&world, &file);
        free_disk(&world);
        assert_eq!(world.cache.status().conflicts, 1, "{name} sends the data");
        assert_eq!(commit(&world, &file), Err(Status::NoSpc), "{name}");
    }
}

#[test]
fn an_unlock_succeeds_although_data_is_lost_and_the_next_commit_reports_it() {
    let world = world(WriteMode::Memory);
    let file = world.file("file", b"");
    let opened = open(&world, &file).open;
    world.below.revoke(&file);
    world.write(&file, 0, b"data");
    fill_disk(&world);
    assert_eq!(unlock(&world, opened), Ok(()));
    free_disk(&world);
    assert_eq!(world.cache.status().conflicts, 1);
    assert_eq!(commit(&world, &file), Err(Status::NoSpc));
    world.write(&file, 0, b"data");
    world.below.cut();
    assert_eq!(unlock(&world, opened), Err(Status::Io), "the data is still unsent");
    world.below.mend();
}

#[test]
fn under_a_delegation_a_commit_to_the_journal_reports_an_earlier_loss() {
    let world = world(WriteMode::Journal);
    let file = world.file("file", b"");
    open(&world, &file);
    world.write(&file, 0, b"data");
    world.pass(60_000);
    fill_disk(&world);
    world.cache.tick();
    free_disk(&world);
    world.write(&file, 0, b"more");
    assert_eq!(commit(&world, &file), Err(Status::NoSpc));
    assert_eq!(commit(&world, &file), Ok(()));
}

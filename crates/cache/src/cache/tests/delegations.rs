//! Unsent data of files whose delegation has ended: nothing of another client is overwritten.

use std::sync::Arc;
use std::thread;

use comity_vfs::layers::Verb;
use comity_vfs::{Fs, Handle, SetAttr, Status, Uid};

use super::{World, open, root, until};
use crate::options::{CacheOptions, WriteMode};

fn world() -> World {
    World::new(CacheOptions { write: WriteMode::Memory, ..CacheOptions::default() })
}

/// Makes a file of twelve bytes, opens it, and writes two pieces of it.
fn written(world: &World) -> Handle {
    let file = world.file("file", b"oldoldoldold");
    open(world, &file);
    world.write(&file, 0, b"one");
    world.write(&file, 9, b"two");
    file
}

/// Handles the event that a delegation has ended.
fn hear(world: &World) {
    world.cache.open_files().unwrap().poll_event(Default::default()).unwrap();
}

/// Lets the write of this number fail.
fn fail_write(world: &World, number: u32) {
    let mut count = 0;
    world.below.before(move |verb| {
        count += u32::from(verb == Verb::Write);
        if verb == Verb::Write && count == number { Err(Status::Io) } else { Ok(()) }
    });
}

#[test]
fn data_that_could_not_be_sent_before_a_return_is_not_written_over_a_later_change() {
    let world = world();
    let file = written(&world);
    world.below.cut();
    let returned = world.cache.open_files().unwrap().return_delegation(&file);
    assert_eq!(returned, Err(Status::Io));
    world.below.mend();
    world.change(&file, 0, b"theirs");
    assert_eq!(world.cache.commit(&file), Err(Status::Stale));
    assert_eq!(world.seen(&file), b"theirsoldold");
    assert_eq!(world.cache.status().conflicts, 1);
}

#[test]
fn data_is_not_sent_after_a_delegation_has_ended_although_no_event_was_handled() {
    let world = world();
    let file = written(&world);
    world.below.end(&file);
    world.change(&file, 0, b"theirs");
    assert_eq!(world.cache.commit(&file), Err(Status::Stale));
    assert_eq!(world.seen(&file), b"theirsoldold");
}

/// The first piece was on its way. Only the server could have refused it.
#[test]
fn the_pieces_after_the_end_of_a_delegation_are_not_sent() {
    let world = world();
    let file = written(&world);
    let below = Arc::clone(&world.below);
    world.below.before(move |_| {
        below.end(&file);
        below.others().write(&root(), &file, 6, b"theirs").map(drop)
    });
    assert_eq!(world.cache.commit(&file), Err(Status::Stale));
    assert_eq!(world.seen(&file), b"oneoldtheirs");
}

#[test]
fn a_part_that_was_sent_before_the_end_of_a_delegation_is_no_conflict() {
    for has_event in [true, false] {
        let world = world();
        let file = written(&world);
        fail_write(&world, 2);
        assert_eq!(world.cache.commit(&file), Err(Status::Io));
        world.below.end(&file);
        if has_event {
            world.below.revoke(&file);
            hear(&world);
        }
        assert_eq!(world.cache.commit(&file).map(drop), Ok(()));
        assert_eq!(world.seen(&file), b"oneoldoldtwo");
        assert_eq!(world.cache.status().conflicts, 0);
    }
}

/// The rename changes the change attribute of the file, so the data is sent before.
#[test]
fn an_own_change_under_a_delegation_is_no_conflict() {
    let world = world();
    let file = written(&world);
    let top = world.cache.root();
    let (from, to) = ((&top, super::name("file")), (&top, super::name("other")));
    world.cache.rename(&root(), from, to).unwrap();
    assert_eq!(world.seen(&file), b"oneoldoldtwo");
    world.below.end(&file);
    assert_eq!(world.cache.commit(&file).map(drop), Ok(()));
    assert_eq!(world.cache.status().conflicts, 0);
}

#[test]
fn data_is_sent_under_a_delegation_without_asking_for_attributes() {
    let world = world();
    let file = written(&world);
    let asked = world.calls(Verb::Getattr);
    world.cache.open_files().unwrap().return_delegation(&file).unwrap();
    assert_eq!(world.calls(Verb::Getattr), asked);
    assert_eq!(world.seen(&file), b"oneoldoldtwo");
}

/// A program that runs as root may set the owner of a file that it only looks into, as SQLite does
/// with the journal of another process.
#[test]
fn attributes_that_another_client_has_set_are_no_conflict() {
    let world = world();
    let file = written(&world);
    world.below.end(&file);
    let set = SetAttr { uid: Some(Uid::new(0)), ..SetAttr::default() };
    let before = world.below.others().getattr(&file).unwrap().change;
    let after = world.below.others().setattr(&root(), &file, &set, None).unwrap().after.unwrap();
    assert_ne!(after.change, before);
    assert_eq!(world.cache.commit(&file).map(drop), Ok(()));
    assert_eq!(world.seen(&file), b"oneoldoldtwo");
    assert_eq!(world.cache.status().conflicts, 0);
}

/// Otherwise it would not be known whether the data was written before the return or after it, and
/// so whether a later change of the file is this client's.
#[test]
fn no_data_is_sent_while_a_delegation_is_returned() {
    let world = world();
    let file = written(&world);
    let files = world.cache.open_files().unwrap();
    thread::scope(|scope| {
        let returning = world.below.returned.lock().unwrap();
        scope.spawn(|| files.return_delegation(&file).unwrap());
        until("the delegation is being returned", || files.file_grant(&file).is_none());
        world.write(&file, 3, b"new");
        let sent = world.calls(Verb::Write);
        let commit = scope.spawn(|| world.cache.commit(&file).map(drop));
        until("the commit waits", || world.cache.dirty.waiting_senders(&file) == 1);
        assert_eq!(world.calls(Verb::Write), sent);
        drop(returning);
        assert_eq!(commit.join().unwrap(), Ok(()));
    });
    assert_eq!(world.seen(&file), b"onenewoldtwo");
}

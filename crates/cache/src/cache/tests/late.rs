//! Tests of replies that are delayed while something else happens.

use std::sync::atomic::Ordering;

use comity_vfs::layers::Verb;
use comity_vfs::{Fs, Handle, Mode, SetAttr, Status};

use super::{World, name, root, until};
use crate::options::{CacheOptions, WriteMode};

fn world() -> World {
    World::new(CacheOptions { write: WriteMode::Through, ..CacheOptions::default() })
}

/// Runs `meanwhile` while the reply to `ask` is delayed.
fn answered_late<T: Send>(
    world: &World,
    ask: impl FnOnce() -> T + Send,
    meanwhile: impl FnOnce(),
) -> T {
    let before = world.below.answered.load(Ordering::SeqCst);
    let held = world.below.answers.lock().unwrap();
    std::thread::scope(|scope| {
        let asked = scope.spawn(ask);
        until("it is answered", || world.below.answered.load(Ordering::SeqCst) > before);
        meanwhile();
        drop(held);
        asked.join().unwrap()
    })
}

fn set_mode(world: &World, node: &Handle, mode: u32) {
    let set = SetAttr { mode: Some(Mode::new(mode)), ..SetAttr::default() };
    world.cache.setattr(&root(), node, &set, None).unwrap();
}

#[test]
fn attributes_from_before_an_own_change_are_not_kept() {
    let world = &world();
    let file = world.file("file", b"data");
    world.cache.getattr(&file).unwrap();
    world.pass(100_000);
    let ask = || world.cache.getattr(&file).unwrap();
    answered_late(world, ask, || set_mode(world, &file, 0o600));
    assert_eq!(world.cache.getattr(&file).unwrap().mode, Mode::new(0o600));
}

#[test]
fn attributes_from_before_a_delegation_was_lost_are_not_kept() {
    let world = &world();
    let file = world.file("file", b"data");
    let ask = || world.cache.getattr(&file).unwrap();
    ask();
    world.pass(100_000);
    world.below.delegates.store(true, Ordering::SeqCst);
    answered_late(world, ask, || {
        world.change(&file, 0, b"more data");
        world.below.revoke(&file);
        world.cache.open_files().unwrap().poll_event(Default::default()).unwrap();
    });
    assert_eq!(world.cache.getattr(&file).unwrap().size, 9);
}

#[test]
fn a_name_that_was_found_before_a_rename_is_not_kept() {
    let world = &world();
    let file = world.file("old", b"data");
    let dir = world.cache.root();
    world.cache.getattr(&dir).unwrap();
    let find = |text| world.cache.lookup(&root(), &dir, name(text)).map(|found| found.node.handle);
    let rename = || {
        world.cache.rename(&root(), (&dir, name("old")), (&dir, name("new"))).unwrap();
    };
    assert_eq!(answered_late(world, || find("old"), rename), Ok(file));
    assert_eq!(find("old"), Err(Status::NoEnt));
    assert_eq!(find("new"), Ok(file));
}

#[test]
fn a_name_that_was_listed_before_its_rename_is_not_kept() {
    let world = &world();
    let dir = world.cache.root();
    let files = ["one", "two"].map(|text| (text, world.file(text, b"data")));
    world.cache.getattr(&dir).unwrap();
    let mut renamed = None;
    let mut visit = |entry: &comity_vfs::Listing<'_, comity_vfs::Disk>| {
        let other = files.iter().find(|(text, _)| entry.name != name(text)).unwrap();
        if renamed.is_none() {
            let (from, to) = ((&dir, name(other.0)), (&dir, name("new")));
            world.cache.rename(&root(), from, to).unwrap();
            renamed = Some(*other);
        }
        std::ops::ControlFlow::Continue(())
    };
    world.cache.readdir(&root(), &dir, 0, comity_vfs::Listed::Nodes, &mut visit).unwrap();
    let (text, file) = renamed.unwrap();
    let find = |text| world.cache.lookup(&root(), &dir, name(text)).map(|found| found.node.handle);
    assert_eq!(find(text), Err(Status::NoEnt));
    assert_eq!(find("new"), Ok(file));
}

/// Another process closes a descriptor of the file, or calls fsync, while a program appends to it.
#[test]
fn a_commit_does_not_wait_for_data_that_is_written_meanwhile() {
    let options = CacheOptions { write: WriteMode::Memory, ..CacheOptions::default() };
    let world = &World::new(options);
    let file = world.file("log", b"");
    world.write(&file, 0, b"first");
    let commit = || world.cache.commit(&file).unwrap();
    answered_late(world, commit, || world.write(&file, 5, b", second"));
    assert_eq!((world.calls(Verb::Write), world.seen(&file)), (1, b"first".to_vec()));
    commit();
    assert_eq!((world.calls(Verb::Write), world.seen(&file)), (2, b"first, second".to_vec()));
}

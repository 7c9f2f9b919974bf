//! Tests of notified changes and own changes in a delegated directory: its cached state is kept.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use comity_vfs::layers::Verb;
use comity_vfs::{
    Create, Fs, Handle, Listed, NoticedChange, NoticedObject, OpenAccess, OpenFiles, SetAttr,
    SetTime, Status, Time,
};

use super::*;
use crate::options::AttributeTimes;

/// A cache that uses cached state only under a delegation; its root directory is delegated and
/// cached.
fn delegated() -> World {
    let options = CacheOptions { times: AttributeTimes::NONE, ..CacheOptions::default() };
    let world = World::new(options);
    world.below.grants.store(true, Ordering::SeqCst);
    world.file("first", b"");
    for _ in 0..3 {
        list(&world);
        find(&world, "new").unwrap_err();
    }
    world
}

fn find(world: &World, text: &str) -> Result<Handle> {
    let fs = &world.cache;
    fs.lookup(&root(), &fs.root(), name(text)).map(|found| found.node.handle)
}

fn list(world: &World) -> Vec<String> {
    let (fs, mut names) = (&world.cache, Vec::new());
    fs.readdir(&root(), &fs.root(), 0, Listed::Names, &mut |entry| {
        names.push(String::from_utf8(entry.name.bytes().to_vec()).unwrap());
        ControlFlow::Continue(())
    })
    .unwrap();
    names.sort();
    names
}

/// The number of the grant of the root directory.
fn grant(world: &World) -> u64 {
    world.cache.directory_grant(&world.cache.root()).unwrap().0
}

fn object(node: Handle) -> NoticedObject {
    NoticedObject { node: Some(node), fileid: Some(9) }
}

fn tell(world: &World, change: NoticedChange) {
    world.below.notify(&world.cache.root(), grant(world), change);
}

fn text(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

#[test]
fn notified_changes_are_in_the_listing_and_the_names_without_a_call() {
    let world = delegated();
    let before = world.all_calls();
    let handle = world.file("new", b"");
    tell(&world, NoticedChange::Added { name: text("new"), object: object(handle) });
    assert_eq!(list(&world), ["first", "new"]);
    let fs = world.below.others();
    fs.rename(&root(), (&fs.root(), name("new")), (&fs.root(), name("newer"))).unwrap();
    let (from, name_) = (text("new"), text("newer"));
    tell(&world, NoticedChange::Renamed { from, name: name_, object: object(handle) });
    assert_eq!(list(&world), ["first", "newer"]);
    assert_eq!(find(&world, "new"), Err(Status::NoEnt));
    fs.remove(&root(), &fs.root(), name("newer")).unwrap();
    tell(&world, NoticedChange::Removed { name: text("newer") });
    assert_eq!(list(&world), ["first"]);
    let attr = world.cache.getattr(&world.cache.root()).unwrap();
    assert_eq!(attr.change, fs.getattr(&fs.root()).unwrap().change);
    assert_eq!(world.all_calls(), before);
}

#[test]
fn notified_attributes_keep_the_listing() {
    let (world, user) = (delegated(), root());
    let before = world.all_calls();
    let (below, later) = (world.below.others(), Time { seconds: 4_000_000_000, nanoseconds: 0 });
    let set = SetAttr { mtime: Some(SetTime::To(later)), ..SetAttr::default() };
    below.setattr(&user, &below.root(), &set, None).unwrap();
    tell(&world, NoticedChange::Attributes);
    assert_eq!(world.cache.getattr(&world.cache.root()).unwrap().mtime, later);
    assert_eq!(list(&world), ["first"]);
    assert_eq!(world.all_calls(), before);
}

#[test]
fn a_name_added_by_a_notification_costs_only_its_attributes() {
    let world = delegated();
    let handle = world.file("new", b"");
    tell(&world, NoticedChange::Added { name: text("new"), object: object(handle) });
    let before = world.calls(Verb::Lookup);
    assert_eq!(find(&world, "new"), Ok(handle));
    assert_eq!(world.calls(Verb::Lookup), before);
}

#[test]
fn an_object_missing_in_a_notification_is_looked_up() {
    let world = delegated();
    let handle = world.file("new", b"");
    let object = NoticedObject::default();
    tell(&world, NoticedChange::Added { name: text("new"), object });
    assert_eq!(find(&world, "new"), Ok(handle));
    assert_eq!(list(&world), ["first", "new"]);
}

#[test]
fn after_a_notification_before_its_grant_everything_is_fetched_again() {
    let world = delegated();
    let handle = world.file("new", b"");
    let next = grant(&world) + 1;
    let change = NoticedChange::Added { name: text("new"), object: object(handle) };
    world.below.notify(&world.cache.root(), next, change);
    assert_eq!(find(&world, "new"), Ok(handle));
    assert_eq!(list(&world), ["first", "new"]);
}

#[test]
fn late_attributes_do_not_replace_those_of_an_own_change() {
    let world = delegated();
    world.file("new", b"");
    // The notification arrives after this client's create, but describes an earlier change.
    tell(&world, NoticedChange::Removed { name: text("never") });
    let (fs, how) = (&world.cache, Create::Guarded(SetAttr::default()));
    fs.create(&root(), &fs.root(), name("own"), &how).unwrap();
    let below = world.below.others();
    assert_eq!(
        fs.getattr(&fs.root()).unwrap().change,
        below.getattr(&below.root()).unwrap().change
    );
    assert_eq!(list(&world), ["first", "new", "own"]);
}

#[test]
fn a_late_notification_does_not_undo_an_own_change() {
    let world = delegated();
    let (fs, below) = (&world.cache, world.below.others());
    let how = Create::Guarded(SetAttr::default());
    fs.create(&root(), &fs.root(), name("lock"), &how).unwrap();
    below.remove(&root(), &below.root(), name("lock")).unwrap();
    let removed = below.getattr(&below.root()).unwrap();
    // Another reply brings the attributes after the removal, of which nothing was told yet.
    fs.note(&fs.root(), removed, fs.attributes.ask());
    let made = fs.create(&root(), &fs.root(), name("lock"), &how).unwrap().value.handle;
    assert_eq!(find(&world, "lock"), Ok(made));
    let change = NoticedChange::Removed { name: text("lock") };
    world.below.notify_late((&fs.root(), grant(&world)), change, removed);
    assert_eq!(find(&world, "lock"), Ok(made));
    assert_eq!(list(&world), ["first", "lock"]);
}

#[test]
fn a_name_that_was_removed_here_and_made_again_elsewhere_is_found() {
    let world = delegated();
    let (fs, below) = (&world.cache, world.below.others());
    std::thread::scope(|scope| {
        // The reply to the removal comes after the notification of the creation.
        let replies = world.below.answers.lock().unwrap();
        let removal = scope.spawn(|| fs.remove(&root(), &fs.root(), name("first")));
        let is_removed = || below.lookup(&root(), &below.root(), name("first")).is_err();
        until("the name is removed", is_removed);
        let handle = world.file("first", b"");
        tell(&world, NoticedChange::Added { name: text("first"), object: object(handle) });
        list(&world);
        drop(replies);
        removal.join().unwrap().unwrap();
        fs.getattr(&fs.root()).unwrap();
        assert_eq!(find(&world, "first"), Ok(handle));
    });
}

#[test]
fn own_changes_of_names_keep_the_listing() {
    let world = delegated();
    let (fs, listed) = (&world.cache, world.calls(Verb::Readdir));
    let how = Create::Guarded(SetAttr::default());
    fs.create(&root(), &fs.root(), name("a"), &how).unwrap();
    fs.mkdir(&root(), &fs.root(), name("b"), &SetAttr::default()).unwrap();
    assert_eq!(list(&world), ["a", "b", "first"]);
    fs.rename(&root(), (&fs.root(), name("a")), (&fs.root(), name("c"))).unwrap();
    assert_eq!(list(&world), ["b", "c", "first"]);
    let place = (&fs.root(), name("d"));
    let opened = fs.open_name(&root(), place, OpenAccess::Both, Some(&how)).unwrap();
    fs.close(opened.value.open).unwrap();
    fs.rmdir(&root(), &fs.root(), name("b")).unwrap();
    fs.remove(&root(), &fs.root(), name("first")).unwrap();
    assert_eq!(list(&world), ["c", "d"]);
    assert_eq!(world.calls(Verb::Readdir), listed, "the server is not asked");
}

#[test]
fn after_an_unnoticed_change_an_own_change_drops_the_listing() {
    let world = delegated();
    let (fs, listed) = (&world.cache, world.calls(Verb::Readdir));
    world.file("other", b"");
    let how = Create::Guarded(SetAttr::default());
    fs.create(&root(), &fs.root(), name("own"), &how).unwrap();
    assert_eq!(list(&world), ["first", "other", "own"]);
    assert!(world.calls(Verb::Readdir) > listed);
}

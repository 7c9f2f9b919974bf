//! Tests of delegated directories: which calls are saved, and which changes are seen.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use comity_vfs::layers::Verb;
use comity_vfs::{
    Create, Fs, Handle, Listed, Mode, OpenAccess, OpenEvent, OpenFiles, SetAttr, Status,
};

use super::*;
use crate::limits::UNLISTED_TIME_MAX;
use crate::options::AttributeTimes;

/// A cache that uses cached state only under a delegation; directories are delegated.
fn delegating() -> World {
    let options = CacheOptions { times: AttributeTimes::NONE, ..CacheOptions::default() };
    let world = World::new(options);
    world.below.grants.store(true, Ordering::SeqCst);
    world
}

/// A cache that uses attributes for some time; directories are delegated.
fn usual() -> World {
    let world = World::new(CacheOptions::default());
    world.below.grants.store(true, Ordering::SeqCst);
    world
}

fn find(fs: &dyn Fs, text: &str) -> Result<Handle> {
    fs.lookup(&root(), &fs.root(), name(text)).map(|found| found.node.handle)
}

/// The names in the root directory, from a listing of `wanted`.
fn list(fs: &dyn Fs, wanted: Listed) -> Vec<String> {
    let mut names = Vec::new();
    fs.readdir(&root(), &fs.root(), 0, wanted, &mut |entry| {
        names.push(String::from_utf8(entry.name.bytes().to_vec()).unwrap());
        ControlFlow::Continue(())
    })
    .unwrap();
    names.sort();
    names
}

fn create(fs: &dyn Fs, text: &str) {
    let how = Create::Guarded(SetAttr::default());
    fs.create(&root(), &fs.root(), name(text), &how).unwrap();
}

/// Recalls and returns the delegation of the root directory, as a mount does.
fn recall(world: &World) {
    let node = world.cache.root();
    world.below.end_grant(&node, OpenEvent::Recalled { node, is_truncated: false });
    assert!(world.cache.poll_event(Duration::ZERO).is_some());
    world.cache.return_delegation(&node).unwrap();
}

#[test]
fn a_directory_delegation_is_requested_at_the_second_read() {
    let world = delegating();
    find(&world.cache, "x").unwrap_err();
    assert_eq!(world.below.asked_for.load(Ordering::SeqCst), 0);
    find(&world.cache, "x").unwrap_err();
    find(&world.cache, "x").unwrap_err();
    assert_eq!(world.below.asked_for.load(Ordering::SeqCst), 1);
    world.pass(1_000_000_000);
    find(&world.cache, "x").unwrap_err();
    assert_eq!(world.calls(Verb::Lookup), 2, "a missing name is known from the grant on");
}

#[test]
fn a_name_from_before_a_delegation_is_used_unless_the_directory_has_changed() {
    let world = delegating();
    world.file("old", b"");
    let look = || (find(&world.cache, "old").is_ok(), find(&world.cache, "new").is_ok());
    assert_eq!((0..3).map(|_| look()).max(), Some((true, false)));
    let before = world.calls(Verb::Lookup);
    recall(&world);
    assert_eq!(look(), (true, false));
    assert_eq!(world.calls(Verb::Lookup), before, "nobody has changed the directory");
    recall(&world);
    world.file("new", b"");
    assert_eq!(look(), (true, true));
}

#[test]
fn a_refused_request_for_a_delegation_saves_the_lookup_of_a_known_name() {
    let times = AttributeTimes { dir: (1_000, 1_000), ..AttributeTimes::default() };
    let world = World::new(CacheOptions { times, ..CacheOptions::default() });
    // The file system below has delegations, and none for directories.
    world.below.delegates.store(true, Ordering::SeqCst);
    world.file("old", b"");
    find(&world.cache, "old").unwrap();
    world.pass(1_000);
    find(&world.cache, "old").unwrap();
    assert_eq!(world.below.asked_for.load(Ordering::SeqCst), 1);
    assert_eq!(world.calls(Verb::Lookup), 1, "the attributes came with the refusal");
}

#[test]
fn the_return_of_a_directory_commits_nothing() {
    let world = delegating();
    (0..3).for_each(|_| drop(list(&world.cache, Listed::Names)));
    let before = world.all_calls();
    recall(&world);
    assert_eq!(world.all_calls(), before);
}

#[test]
fn names_missing_names_listings_and_attributes_cost_no_call_under_a_delegation() {
    let world = usual();
    let files: Vec<String> = (0..50).map(|number| format!("f{number:02}")).collect();
    for file in &files {
        world.file(file, b"");
    }
    let round = || {
        world.cache.getattr(&world.cache.root()).unwrap();
        assert_eq!(list(&world.cache, Listed::Nodes), files);
        for number in 0..20 {
            assert_eq!(find(&world.cache, &format!("m{number}")), Err(Status::NoEnt));
        }
        assert!(files.iter().all(|file| find(&world.cache, file).is_ok()));
    };
    round();
    round();
    let before = world.all_calls();
    round();
    round();
    assert_eq!(world.all_calls(), before);
    assert_eq!(world.calls(Verb::Lookup), 0, "the listing has all names");
}

#[test]
fn a_change_by_another_client_is_seen_once_the_delegation_is_returned() {
    let world = usual();
    world.file("old", b"");
    for _ in 0..3 {
        assert_eq!(find(&world.cache, "new"), Err(Status::NoEnt));
        assert_eq!(list(&world.cache, Listed::Nodes), ["old"]);
    }
    recall(&world);
    world.file("new", b"");
    assert!(find(&world.cache, "new").is_ok());
    assert_eq!(list(&world.cache, Listed::Nodes), ["new", "old"]);
}

#[test]
fn a_name_from_before_a_change_is_not_used_under_the_next_delegation() {
    let world = usual();
    for _ in 0..3 {
        assert_eq!(find(&world.cache, "new"), Err(Status::NoEnt));
        assert!(list(&world.cache, Listed::Names).is_empty());
    }
    recall(&world);
    world.file("new", b"");
    // The next look requests the delegation, and finds that the directory has changed.
    world.cache.getattr(&world.cache.root()).unwrap();
    assert!(world.cache.directory_grant(&world.cache.root()).is_some());
    assert!(find(&world.cache, "new").is_ok());
    assert_eq!(list(&world.cache, Listed::Names), ["new"]);
}

#[test]
fn a_lost_delegation_is_not_used() {
    let world = delegating();
    for _ in 0..3 {
        assert_eq!(find(&world.cache, "new"), Err(Status::NoEnt));
    }
    let node = world.cache.root();
    world.below.end_grant(&node, OpenEvent::DelegationLost { node });
    world.file("new", b"");
    assert!(find(&world.cache, "new").is_ok(), "before the event was polled");
    world.cache.poll_event(Duration::ZERO).unwrap();
    assert!(find(&world.cache, "new").is_ok());
}

#[test]
fn own_changes_are_seen_in_listings_and_names_at_once() {
    let world = delegating();
    for _ in 0..3 {
        assert_eq!(find(&world.cache, "own"), Err(Status::NoEnt));
        assert!(list(&world.cache, Listed::Names).is_empty());
    }
    create(&world.cache, "own");
    assert_eq!(list(&world.cache, Listed::Names), ["own"]);
    assert!(find(&world.cache, "own").is_ok());
    let dir = world.cache.root();
    world.cache.rename(&root(), (&dir, name("own")), (&dir, name("moved"))).unwrap();
    assert_eq!(list(&world.cache, Listed::Names), ["moved"]);
    assert_eq!(find(&world.cache, "own"), Err(Status::NoEnt));
    assert!(find(&world.cache, "moved").is_ok());
    world.cache.remove(&root(), &dir, name("moved")).unwrap();
    assert_eq!(find(&world.cache, "moved"), Err(Status::NoEnt));
    assert!(list(&world.cache, Listed::Names).is_empty());
    assert_eq!(world.below.asked_for.load(Ordering::SeqCst), 1, "the delegation was never lost");
}

#[test]
fn an_own_change_without_attributes_of_the_directory_is_seen() {
    let world = delegating();
    for _ in 0..3 {
        assert_eq!(find(&world.cache, "own"), Err(Status::NoEnt));
        assert!(list(&world.cache, Listed::Names).is_empty());
    }
    world.below.silent.store(true, Ordering::SeqCst);
    create(&world.cache, "own");
    assert!(find(&world.cache, "own").is_ok());
    assert_eq!(list(&world.cache, Listed::Names), ["own"]);
}

#[test]
fn a_recall_that_races_with_an_own_create_loses_neither_change() {
    let world = usual();
    for _ in 0..3 {
        assert_eq!(find(&world.cache, "own"), Err(Status::NoEnt));
        assert!(list(&world.cache, Listed::Names).is_empty());
    }
    // The recall comes during the create, and the other client's change after it.
    let node = world.cache.root();
    world.below.end_grant(&node, OpenEvent::Recalled { node, is_truncated: false });
    create(&world.cache, "own");
    world.cache.poll_event(Duration::ZERO).unwrap();
    world.cache.return_delegation(&node).unwrap();
    world.file("other", b"");
    assert_eq!(list(&world.cache, Listed::Names), ["other", "own"]);
    assert!(find(&world.cache, "own").is_ok() && find(&world.cache, "other").is_ok());
}

#[test]
fn a_listing_continues_after_each_entry_from_memory_and_after_a_change() {
    let world = usual();
    let files: Vec<String> = (0..10).map(|number| format!("f{number}")).collect();
    for file in &files {
        world.file(file, b"");
    }
    for _ in 0..3 {
        assert_eq!(list(&world.cache, Listed::Nodes), files);
    }
    let before = world.all_calls();
    let page = |cookie: u64| {
        let mut found = None;
        let visit = &mut |entry: &comity_vfs::Listing<'_, Disk>| {
            found = Some((entry.name.bytes().to_vec(), entry.cookie));
            ControlFlow::Break(())
        };
        world.cache.readdir(&root(), &world.cache.root(), cookie, Listed::Nodes, visit).unwrap();
        found
    };
    let (mut cookie, mut count) = (0, 0);
    while let Some((entry, next)) = page(cookie) {
        (cookie, count) = (next, count + 1);
        if count == 5 {
            assert_eq!(world.all_calls(), before);
            let other = if entry == b"f9" { "f8" } else { "f9" };
            world.cache.remove(&root(), &world.cache.root(), name(other)).ok();
        }
    }
    assert!((9..=10).contains(&count), "{count} entries");
}

/// The server may have made a change although the caller got an error. This client's own change
/// causes no recall.
#[test]
fn a_change_that_failed_for_its_caller_and_was_made_is_seen_under_a_delegation() {
    let world = delegating();
    for _ in 0..3 {
        find(&world.cache, "x").unwrap_err();
        assert_eq!(list(&world.cache, Listed::Names), Vec::<String>::new());
    }
    let dir = world.cache.root();
    create(world.below.others(), "x");
    let failed = world.cache.open_name(&root(), (&dir, name("x")), OpenAccess::Read, None);
    assert!(failed.is_err());
    assert!(find(&world.cache, "x").is_ok(), "after an open that failed");
    assert_eq!(list(&world.cache, Listed::Names), ["x"]);
    world.below.cut();
    let how = Create::Guarded(SetAttr::default());
    world.cache.create(&root(), &dir, name("y"), &how).unwrap_err();
    world.below.mend();
    create(world.below.others(), "y");
    assert_eq!(list(&world.cache, Listed::Names), ["x", "y"], "after a create that failed");
}

fn make_directory(world: &World, text: &str) -> Handle {
    let set = SetAttr { mode: Some(Mode::new(0o755)), ..SetAttr::default() };
    let root_dir = world.cache.root();
    world.cache.mkdir(&root(), &root_dir, name(text), &set).unwrap().value.handle
}

#[test]
fn names_in_a_directory_that_was_made_here_cost_no_lookup() {
    let world = World::new(CacheOptions::default());
    let dir = make_directory(&world, "dir");
    let missing = || world.cache.lookup(&root(), &dir, name("file")).unwrap_err();
    assert_eq!(missing(), Status::NoEnt);
    let how = Create::Guarded(SetAttr::default());
    let made = world.cache.create(&root(), &dir, name("file"), &how).unwrap().value.handle;
    let found = world.cache.lookup(&root(), &dir, name("file")).unwrap();
    assert_eq!(found.node.handle, made);
    world.cache.remove(&root(), &dir, name("file")).unwrap();
    assert_eq!(missing(), Status::NoEnt);
    assert_eq!(world.calls(Verb::Lookup), 0);
}

#[test]
fn a_name_that_another_client_adds_is_found_after_a_moment() {
    let world = World::new(CacheOptions::default());
    let dir = make_directory(&world, "dir");
    let how = Create::Guarded(SetAttr::default());
    world.below.others().create(&root(), &dir, name("file"), &how).unwrap();
    world.pass(UNLISTED_TIME_MAX);
    assert!(world.cache.lookup(&root(), &dir, name("file")).is_ok());
}

#[test]
fn names_that_a_server_may_not_list_are_looked_up() {
    let world = World::new(CacheOptions::default());
    let dir = make_directory(&world, "dir");
    for (calls, text) in (1..).zip([".snapshot", "~snapshot", "\u{e9}t\u{e9}"]) {
        world.cache.lookup(&root(), &dir, name(text)).unwrap_err();
        assert_eq!(world.calls(Verb::Lookup), calls, "{text}");
    }
}

#[test]
fn all_names_are_looked_up_where_case_is_ignored() {
    let world = World::new(CacheOptions::default());
    world.below.ignores_case.store(true, Ordering::SeqCst);
    let dir = make_directory(&world, "dir");
    world.cache.lookup(&root(), &dir, name("file")).unwrap_err();
    assert_eq!(world.calls(Verb::Lookup), 1);
}

#[test]
fn a_name_whose_file_is_found_gone_at_an_open_is_looked_up_again() {
    let world = usual();
    world.file("file", b"");
    let old = find(&world.cache, "file").unwrap();
    let others = world.below.others();
    others.remove(&root(), &others.root(), name("file")).unwrap();
    assert_eq!(find(&world.cache, "file"), Ok(old), "the cached name");
    let files = world.cache.open_files().unwrap();
    assert_eq!(files.open(&root(), &old, None, OpenAccess::Read).unwrap_err(), Status::Stale);
    assert_eq!(find(&world.cache, "file"), Err(Status::NoEnt));
}

#[test]
fn a_file_that_another_client_has_replaced_is_not_opened_by_its_old_name() {
    for is_listed in [false, true] {
        let world = World::new(CacheOptions::default());
        world.below.delegates.store(true, Ordering::SeqCst);
        world.file("file", b"");
        if is_listed {
            list(&world.cache, Listed::Nodes);
        }
        let old = find(&world.cache, "file").unwrap();
        let others = world.below.others();
        let top = others.root();
        others.rename(&root(), (&top, name("file")), (&top, name("backup"))).unwrap();
        let new = world.file("file", b"");
        assert_eq!(find(&world.cache, "file"), Ok(old), "the cached name");
        let open = |node: &Handle| {
            let place = Some((&top, name("file")));
            world.cache.open_files().unwrap().open(&root(), node, place, OpenAccess::Read)
        };
        assert_eq!(open(&old).unwrap_err(), Status::Stale);
        assert_eq!(find(&world.cache, "file"), Ok(new));
        assert_eq!(open(&new).unwrap().handle, new);
    }
}

#[test]
fn a_caller_who_is_not_the_owner_is_not_answered_from_the_listing() {
    let world = World::new(CacheOptions::default());
    let dir = make_directory(&world, "dir");
    world.cache.lookup(&cred(7), &dir, name("file")).unwrap_err();
    assert_eq!(world.calls(Verb::Lookup), 1);
}

#[test]
fn a_listing_with_attributes_answers_the_looks_that_follow() {
    let world = World::new(CacheOptions::default());
    let files: Vec<String> = (0..50).map(|number| format!("f{number:02}")).collect();
    for file in &files {
        world.file(file, b"");
    }
    world.cache.getattr(&world.cache.root()).unwrap();
    for _ in 0..4 {
        assert_eq!(list(&world.cache, Listed::Nodes), files);
        assert!(files.iter().all(|file| find(&world.cache, file).is_ok()));
    }
    assert_eq!((world.calls(Verb::Readdir), world.calls(Verb::Lookup)), (1, 0));
}

#[test]
fn a_rename_of_a_link_over_another_of_the_same_file_keeps_both() {
    let world = World::new(CacheOptions::default());
    let file = world.file("a", b"");
    world.below.others().link(&root(), &file, &world.cache.root(), name("b")).unwrap();
    let dir = world.cache.root();
    world.cache.getattr(&dir).unwrap();
    assert_eq!(list(&world.cache, Listed::Nodes), ["a", "b"]);
    world.cache.rename(&root(), (&dir, name("a")), (&dir, name("b"))).unwrap();
    assert_eq!(list(&world.cache, Listed::Nodes), ["a", "b"]);
    assert_eq!(find(&world.cache, "a"), Ok(file));
}

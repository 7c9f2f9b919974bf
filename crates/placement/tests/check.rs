//! The comparison of placed files with their data files finds each kind of fault.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use std::sync::atomic::Ordering;

use comity_vfs::{
    CheckedFile, CheckedPage, Create, Handle, Placement, SetAttr, Status, StripeFault, XattrMode,
};
use common::{UNIT, World, name, root};

/// Makes a file with data in three stripe units and a bit of the fourth; returns its handle.
fn file(world: &World, of: &str) -> Handle {
    use comity_vfs::Fs;
    let how = Create::Unchecked(SetAttr::default());
    let made = world.placed.create(&root(), &world.placed.root(), name(of), &how).unwrap();
    let data = vec![1; 3 * UNIT as usize + 10];
    world.placed.write(&root(), &made.value.handle, 0, &data).unwrap();
    made.value.handle
}

fn check(world: &World) -> CheckedPage {
    world.placed.check(&world.below.root(), 0).unwrap()
}

/// Checks the only file of a world; returns it.
fn checked(world: &World) -> CheckedFile {
    let CheckedPage { files, next, .. } = check(world);
    assert_eq!((files.len(), next), (1, None));
    files[0].clone()
}

fn resize(world: &World, store: usize, data_file: &str, size: u64) {
    let fs = &world.stores[store].fs;
    let found = fs.lookup(&root(), &fs.root(), name(data_file)).unwrap().node.handle;
    let set = SetAttr { size: Some(size), ..SetAttr::default() };
    fs.setattr(&root(), &found, &set, None).unwrap();
}

fn on(server: &str, fault: StripeFault) -> (Option<Box<str>>, StripeFault) {
    (Some(server.into()), fault)
}

#[test]
fn a_whole_file_has_no_faults_and_files_without_a_place_are_left_out() {
    let world = World::in_memory(2);
    file(&world, "f");
    let how = Create::Unchecked(SetAttr::default());
    world.below.create(&root(), &world.below.root(), name("own"), &how).unwrap();
    let found = checked(&world);
    assert_eq!((&*found.name, found.faults.as_slice()), (&b"f"[..], &[][..]));
    let stored = world.placed.stored("s1", 0).unwrap();
    assert_eq!(stored.names, [found.stored_name.unwrap().as_bytes().into()]);
    assert_eq!(world.placed.stored("s2", 0), Err(Status::NoEnt));
}

#[test]
fn an_empty_file_needs_no_data_files() {
    use comity_vfs::Fs;
    let world = World::in_memory(2);
    let how = Create::Unchecked(SetAttr::default());
    world.placed.create(&root(), &world.placed.root(), name("f"), &how).unwrap();
    assert_eq!(checked(&world).faults, []);
}

#[test]
fn data_files_that_are_missing_or_short_or_long_are_found() {
    let world = World::in_memory(3);
    file(&world, "f");
    let data_file = checked(&world).stored_name.unwrap();
    let first = &world.stores[0].fs;
    first.remove(&root(), &first.root(), name(&data_file)).unwrap();
    resize(&world, 1, &data_file, 5);
    resize(&world, 2, &data_file, 5 * UNIT);
    let size = 3 * UNIT + 10;
    let expected = [
        on("s0", StripeFault::Missing(size)),
        on("s1", StripeFault::Short { has: 5, needs: 2 * UNIT }),
        on("s2", StripeFault::Long { has: 5 * UNIT, size }),
    ];
    assert_eq!(checked(&world).faults, expected);
}

#[test]
fn a_data_server_that_is_down_is_told_apart_from_one_that_has_lost_data() {
    let world = World::in_memory(2);
    file(&world, "f");
    world.stores[1].is_down.store(true, Ordering::Relaxed);
    assert_eq!(checked(&world).faults, [on("s1", StripeFault::Unchecked(Status::Delay))]);
    assert_eq!(world.placed.stored("s1", 0), Err(Status::Delay));
}

#[test]
fn a_damaged_place_and_a_data_server_that_is_not_named_are_found() {
    let world = World::in_memory(2);
    let handle = file(&world, "f");
    let one = World::over(world.below.clone(), vec![world.stores[0].fs.clone()]);
    assert_eq!(checked(&one).faults, [on("s1", StripeFault::UnknownServer)]);
    let place = name("comity.placement");
    let value = Some(&b"other"[..]);
    world.below.setxattr(&root(), &handle, place, value, XattrMode::Replace).unwrap();
    let found = checked(&world);
    assert_eq!(found.faults, [(None, StripeFault::DamagedPlace)]);
    assert_eq!(found.stored_name, None);
}

#[test]
fn pages_of_a_large_directory_have_each_file_once_and_name_its_directories() {
    use comity_vfs::Fs;
    let world = World::in_memory(1);
    let how = Create::Unchecked(SetAttr::default());
    for number in 0..600 {
        let of = format!("f{number}");
        world.placed.create(&root(), &world.placed.root(), name(&of), &how).unwrap();
    }
    let made = world.placed.mkdir(&root(), &world.placed.root(), name("d"), &SetAttr::default());
    let (mut names, mut directories, mut next) = (Vec::new(), Vec::new(), Some(0));
    while let Some(after) = next {
        let page = world.placed.check(&world.below.root(), after).unwrap();
        assert!(page.files.len() <= 256);
        names.extend(page.files.into_iter().map(|file| file.name));
        directories.extend(page.directories);
        next = page.next;
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 600);
    assert_eq!(directories, [((*b"d").into(), made.unwrap().value.handle)]);
}

//! A placement that gets other data servers while it is used.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use comity_placement::{FileOnServer, Placed};
use comity_vfs::{Create, Fs, Handle, MovedFile, Placement, ReadInto, SetAttr, Status};
use common::{UNIT, World, memory, name, root};

fn make(placed: &Placed, of: &str, data: &[u8]) -> Handle {
    make_in(placed, &placed.root(), of, data)
}

fn make_in(placed: &Placed, directory: &Handle, of: &str, data: &[u8]) -> Handle {
    let how = Create::Unchecked(SetAttr::default());
    let file = placed.create(&root(), directory, name(of), &how).unwrap().value.handle;
    placed.write(&root(), &file, 0, data).unwrap();
    file
}

fn bytes_of(placed: &Placed, file: &Handle) -> Vec<u8> {
    let mut bytes = Vec::new();
    placed.read(&root(), file, 0, 1 << 24, &mut ReadInto::new(&mut bytes)).unwrap();
    bytes
}

/// The number of data servers of a file at the top.
fn width(placed: &Placed, file: &Handle) -> usize {
    let page = placed.check(&placed.root(), 0).unwrap();
    page.files.iter().find(|it| it.handle == *file).unwrap().servers.len()
}

#[test]
fn new_files_are_on_added_servers_and_old_files_stay_where_they_are() {
    let world = World::over(memory(), (0..3).map(|_| memory()).collect());
    let before = world.reloaded(2, &[]);
    let old = make(&before, "old", &vec![1; 4 * UNIT as usize]);
    let after = world.reloaded(3, &[]);
    let new = make(&after, "new", &vec![2; 3 * UNIT as usize]);
    assert_eq!([&old, &new].map(|file| width(&after, file)), [2, 3]);
    assert!(bytes_of(&after, &old) == vec![1; 4 * UNIT as usize]);
    assert!(bytes_of(&after, &new) == vec![2; 3 * UNIT as usize]);
    assert_eq!(after.stored("s2", 0).unwrap().names.len(), 1);
}

#[test]
fn a_file_on_a_server_is_found_wherever_it_is_and_whatever_it_holds() {
    let world = World::in_memory(3);
    let (placed, top) = (&world.placed, world.placed.root());
    assert_eq!(placed.file_on(&["s2"]), Ok(None));
    let set = SetAttr::default();
    let mut deep = top;
    for _ in 0..3 {
        deep = placed.mkdir(&root(), &deep, name("d"), &set).unwrap().value.handle;
    }
    let draining = world.reloaded(3, &[2]);
    // More than a page of files that are elsewhere.
    for at in 0..600 {
        make(&draining, &at.to_string(), b"");
    }
    assert_eq!(draining.file_on(&["s2"]), Ok(None));
    let fileid = placed.getattr(&make_in(placed, &deep, "f", b"")).unwrap().fileid;
    let found = draining.file_on(&["none", "s2"]);
    assert_eq!(found, Ok(Some(FileOnServer { fileid, server: "s2".into() })));
}

#[test]
fn calls_from_before_a_reload_know_of_moves_after_it() {
    let world = World::in_memory(3);
    let old = &world.placed;
    let file = make(old, "f", &vec![1; 3 * UNIT as usize]);
    let new = world.reloaded(3, &[2]);
    let during = || {
        assert_eq!(old.write(&root(), &file, 0, b"late").err(), Some(Status::Delay));
        assert_eq!(new.file_on(&["s2"]), Err(Status::Delay));
        Ok(())
    };
    let moved = new.move_file(&file, &during, &|_| {});
    assert_eq!(moved, Ok(MovedFile::Moved { bytes: 3 * UNIT, has_gaps: false }));
    assert_eq!(new.file_on(&["s2"]), Ok(None));
    let last = world.reloaded(2, &[]);
    old.write(&root(), &file, 0, b"after").unwrap();
    assert_eq!(&bytes_of(&last, &file)[..6], b"after\x01");
    assert_eq!((width(&last, &file), width(old, &file)), (2, 2));
}

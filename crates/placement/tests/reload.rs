//! A placement that gets other data servers while it is used.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use std::sync::Arc;

use comity_placement::Placed;
use comity_vfs::{Fs, Handle, MovedFile, Placement, ReadInto, Status};
use common::{UNIT, World, make, memory, root};

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
fn calls_from_before_a_reload_know_of_moves_after_it() {
    let world = World::in_memory(3);
    let old = &world.placed;
    let file = make(old, "f", &vec![1; 3 * UNIT as usize]);
    let new = world.reloaded(3, &[2]);
    let again = new.over(Arc::clone(&world.below), new.settings().clone());
    let during = || {
        assert_eq!(again.write(&root(), &file, 0, b"late").err(), Some(Status::Delay));
        assert_eq!(old.write(&root(), &file, 0, b"late").err(), Some(Status::Delay));
        assert!(new.has_moves());
        Ok(())
    };
    let moved = new.move_file(&file, &during, &|_| {});
    assert_eq!(moved, Ok(MovedFile::Moved { bytes: 3 * UNIT, has_gaps: false }));
    assert!(!new.has_moves() && new.stored("s2", 0).unwrap().names.is_empty());
    let last = world.reloaded(2, &[]);
    old.write(&root(), &file, 0, b"after").unwrap();
    assert_eq!(&bytes_of(&last, &file)[..6], b"after\x01");
    assert_eq!((width(&last, &file), width(old, &file)), (2, 2));
}

/// The placement after a reload in which the last data server is drained, or not.
fn draining(placed: &Placed, is_draining: bool) -> Placed {
    let mut settings = placed.settings().clone();
    settings.servers[2].is_draining = is_draining;
    placed.with(settings)
}

#[test]
fn a_drain_counts_until_new_files_are_placed_on_the_data_server_again() {
    let world = World::in_memory(3);
    let before = world.reloaded(3, &[2]);
    assert!(!before.is_drained("s2"));
    assert_eq!(before.note_drained("s1"), Err(Status::NoEnt), "it is not drained");
    before.note_drained("s2").unwrap();
    let after = draining(&before, true);
    assert!(after.is_drained("s2") && !after.is_drained("s1"));
    let taking = draining(&after, false);
    assert!(!taking.is_drained("s2"));
    // A drain that was begun before says that it has ended.
    after.note_drained("s2").unwrap();
    assert!(!draining(&taking, true).is_drained("s2"));
}

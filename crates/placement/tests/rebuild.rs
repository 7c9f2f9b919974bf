//! The places of files are rebuilt from the labels of their data files.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use comity_placement::Placed;
use comity_vfs::layers::Verb;
use comity_vfs::{
    Create, Data, Fs, Gid, Handle, Mode, NotRebuilt, Placement, ReadInto, Rebuild, RebuildOutcome,
    RebuiltFile, SetAttr, Status, Uid, XattrMode,
};
use common::{After, SMALL_BELOW, UNIT, World, memory, name, root};

const CHANGES: Rebuild<'static> = Rebuild { of: None, except: &[], changes: true };

/// The extended attributes with the place of a file and with the label of a data file.
const PLACE: &str = "comity.placement";
const LABEL: &str = "comity.label";

fn bytes() -> Vec<u8> {
    (0..2 * UNIT + 10).map(|at| (at % 251) as u8).collect()
}

/// Makes a file below a directory, with bytes on both data servers and labels.
fn file(world: &World) -> Handle {
    let placed = &world.placed;
    let dir = placed.mkdir(&root(), &placed.root(), name("d"), &SetAttr::default()).unwrap();
    let how = Create::Unchecked(SetAttr::default());
    let made = placed.create(&root(), &dir.value.handle, name("f"), &how).unwrap();
    let file = made.value.handle;
    placed.write(&root(), &file, 0, &bytes()).unwrap();
    let (uid, gid) = (Some(Uid::new(1001)), Some(Gid::new(100)));
    let set = SetAttr { uid, gid, mode: Some(Mode::new(0o640)), ..SetAttr::default() };
    placed.setattr(&root(), &file, &set, None).unwrap();
    placed.write_labels();
    file
}

/// The same data servers with another metadata server.
fn with_server(world: &World, below: Arc<dyn Fs>) -> World {
    let stores = world.stores.iter().map(|store| Arc::clone(&store.fs)).collect();
    World::over(below, stores)
}

/// Rebuilds from both data servers; returns the outcomes.
fn rebuild(world: &World, how: Rebuild<'_>) -> Vec<RebuildOutcome> {
    let page = |server| world.placed.rebuild(server, 0, how).unwrap().files;
    let outcomes = ["s0", "s1"].map(page).into_iter().flatten();
    outcomes.map(|RebuiltFile { outcome, .. }| outcome).collect()
}

fn look(fs: &dyn Fs, path: &[&str]) -> Handle {
    let step = |dir: Handle, part: &&str| fs.lookup(&root(), &dir, name(part)).unwrap().node.handle;
    path.iter().fold(fs.root(), step)
}

fn read(placed: &Placed, file: &Handle) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut into = ReadInto::new(&mut bytes);
    let read = placed.read(&root(), file, 0, 1 << 20, &mut into).unwrap();
    assert!(matches!(read.data, Data::Appended(_)));
    bytes
}

#[test]
fn a_file_that_has_lost_its_attribute_gets_its_place_back() {
    let world = World::in_memory(2);
    let file = file(&world);
    assert_eq!(rebuild(&world, CHANGES), [RebuildOutcome::Kept; 2]);
    world.below.setxattr(&root(), &file, name(PLACE), None, XattrMode::Replace).unwrap();
    let after = with_server(&world, Arc::clone(&world.below));
    assert_eq!(read(&after.placed, &file), vec![0; bytes().len()]);
    let trial = Rebuild { changes: false, ..CHANGES };
    assert_eq!(rebuild(&after, trial), [RebuildOutcome::Placed; 2]);
    assert_eq!(read(&after.placed, &file), vec![0; bytes().len()], "a trial changes nothing");
    assert_eq!(rebuild(&after, CHANGES), [RebuildOutcome::Placed, RebuildOutcome::Kept]);
    assert_eq!(read(&after.placed, &file), bytes());
}

#[test]
fn a_file_that_is_gone_is_created_with_its_path_owner_mode_and_size() {
    let world = World::in_memory(2);
    file(&world);
    let after = with_server(&world, memory());
    assert_eq!(rebuild(&after, CHANGES), [RebuildOutcome::Created, RebuildOutcome::Kept]);
    let file = look(&after.placed, &["d", "f"]);
    let attr = after.placed.getattr(&file).unwrap();
    assert_eq!((attr.uid, attr.gid), (Uid::new(1001), Gid::new(100)));
    assert_eq!((attr.mode, attr.size), (Mode::new(0o640), bytes().len() as u64));
    assert_eq!(read(&after.placed, &file), bytes());
    let page = after.placed.check(&look(&after.placed, &["d"]), 0).unwrap();
    assert_eq!(page.files[0].faults, []);
}

#[test]
fn a_copy_of_zeros_from_a_backup_gets_the_place_of_its_path_and_another_owners_file_does_not() {
    let world = World::in_memory(2);
    file(&world);
    let after = with_server(&world, memory());
    let below = &after.below;
    let dir = below.mkdir(&root(), &below.root(), name("d"), &SetAttr::default()).unwrap();
    let how = Create::Unchecked(SetAttr::default());
    let copy = below.create(&root(), &dir.value.handle, name("f"), &how).unwrap().value.handle;
    below.write(&root(), &copy, 0, &vec![0; bytes().len()]).unwrap();
    let other = [RebuildOutcome::Left(NotRebuilt::OtherOwner); 2];
    assert_eq!(rebuild(&after, CHANGES), other);
    let set = SetAttr { uid: Some(Uid::new(1001)), ..SetAttr::default() };
    below.setattr(&root(), &copy, &set, None).unwrap();
    assert_eq!(rebuild(&after, CHANGES), [RebuildOutcome::Placed, RebuildOutcome::Kept]);
    assert_eq!(read(&after.placed, &copy), bytes());
}

#[test]
fn a_file_with_bytes_of_its_own_and_one_with_another_place_stay_as_they_are() {
    let world = World::in_memory(2);
    let file = file(&world);
    let below = &world.below;
    below.setxattr(&root(), &file, name(PLACE), None, XattrMode::Replace).unwrap();
    below.write(&root(), &file, UNIT, b"own").unwrap();
    let after = with_server(&world, Arc::clone(below));
    assert_eq!(rebuild(&after, CHANGES), [RebuildOutcome::Left(NotRebuilt::OwnData); 2]);
    let dir = look(&**below, &["d"]);
    after.placed.remove(&root(), &dir, name("f")).unwrap();
    let how = Create::Unchecked(SetAttr::default());
    after.placed.create(&root(), &dir, name("f"), &how).unwrap();
    let other = [RebuildOutcome::Left(NotRebuilt::OtherPlace); 2];
    assert_eq!(rebuild(&after, CHANGES), other, "the file was made anew");
}

#[test]
fn a_label_follows_a_rename_and_a_walk_labels_what_has_none() {
    let world = World::in_memory(2);
    file(&world);
    let placed = &world.placed;
    let (top, dir) = (placed.root(), look(placed, &["d"]));
    placed.rename(&root(), (&dir, name("f")), (&top, name("g"))).unwrap();
    placed.write_labels();
    let path =
        |world: &World| world.placed.rebuild("s1", 0, CHANGES).unwrap().files[0].path.clone();
    assert_eq!(*path(&world), *b"g");
    placed.rename(&root(), (&top, name("g")), (&dir, name("g"))).unwrap();
    placed.rename(&root(), (&top, name("d")), (&top, name("e"))).unwrap();
    placed.write_labels();
    assert_eq!(*path(&world), *b"e/g");
    placed.rename(&root(), (&top, name("e")), (&top, name("d"))).unwrap();
    placed.write_labels();
    assert_eq!(*path(&world), *b"e/g", "the rename of a directory labels no file");
    let labels = |dir| {
        let page = placed.label(dir, 0).unwrap();
        (page.files, page.labels, page.failed.len())
    };
    assert_eq!(labels(&dir), (1, 2, 0));
    assert_eq!((&*path(&world), labels(&dir)), (&b"d/g"[..], (1, 0, 0)));
    let data_file = placed.stored("s0", 0).unwrap().names[0].clone();
    let store = &world.stores[0].fs;
    let data_file =
        store.lookup(&root(), &store.root(), comity_vfs::Name::new(&data_file).unwrap());
    let data_file = data_file.unwrap().node.handle;
    store.setxattr(&root(), &data_file, name(LABEL), None, XattrMode::Replace).unwrap();
    let outcome = |world| rebuild(world, CHANGES)[0];
    assert_eq!(outcome(&world), RebuildOutcome::Left(NotRebuilt::NoLabel));
    // With a new memory, the name of the file is searched for.
    let after = with_server(&world, Arc::clone(&world.below));
    assert_eq!(after.placed.label(&dir, 0).unwrap().labels, 1);
    assert_eq!(outcome(&after), RebuildOutcome::Kept);
}

#[test]
fn labels_that_disagree_after_a_rename_make_one_file() {
    let world = World::in_memory(2);
    file(&world);
    let placed = &world.placed;
    let (top, dir) = (placed.root(), look(placed, &["d"]));
    world.stores[1].is_down.store(true, Ordering::Relaxed);
    placed.rename(&root(), (&dir, name("f")), (&top, name("g"))).unwrap();
    placed.write_labels();
    world.stores[1].is_down.store(false, Ordering::Relaxed);
    let after = with_server(&world, memory());
    assert_eq!(rebuild(&after, CHANGES), [RebuildOutcome::Created, RebuildOutcome::Kept]);
    assert_eq!(read(&after.placed, &look(&after.placed, &["g"])), bytes());
    let gone = after.placed.lookup(&root(), &after.placed.root(), name("d"));
    assert_eq!(gone.err(), Some(Status::NoEnt), "only one of the paths is made");
}

#[test]
fn a_file_in_use_by_a_program_meanwhile_keeps_its_own_bytes() {
    let world = World::in_memory(2);
    let file = file(&world);
    world.below.setxattr(&root(), &file, name(PLACE), None, XattrMode::Replace).unwrap();
    let after = with_server(&world, Arc::clone(&world.below));
    assert_eq!(after.placed.write(&root(), &file, 0, b"own").unwrap().value, 3);
    assert_eq!(rebuild(&after, CHANGES), [RebuildOutcome::Left(NotRebuilt::OwnData); 2]);
    assert_eq!(read(&after.placed, &file)[..3], *b"own");
}

#[test]
fn a_file_that_a_client_has_placed_meanwhile_keeps_its_new_place() {
    let world = World::in_memory(2);
    let file = file(&world);
    world.below.setxattr(&root(), &file, name(PLACE), None, XattrMode::Replace).unwrap();
    let (below, next) = After::over(&world.below, Verb::Getxattr);
    let after = with_server(&world, below).with_threshold();
    let client = after.placed.with(after.placed.settings().clone());
    let write = move || {
        client.write(&root(), &file, SMALL_BELOW, b"new").unwrap();
    };
    *next.lock().unwrap() = Some(Box::new(write));
    let outcomes = after.placed.rebuild("s0", 0, CHANGES).unwrap().files;
    let outcomes: Vec<_> = outcomes.iter().map(|file| file.outcome).collect();
    assert_eq!(outcomes, [RebuildOutcome::Left(NotRebuilt::OtherPlace)]);
    for world in [&after, &with_server(&world, Arc::clone(&world.below))] {
        assert_eq!(read(&world.placed, &file)[SMALL_BELOW as usize..], *b"new");
    }
}

#[test]
fn a_label_of_another_placement_or_another_data_file_changes_nothing() {
    let world = World::in_memory(2);
    file(&world);
    let after = with_server(&world, memory());
    let of_other = Rebuild { of: Some(b"/other"), ..CHANGES };
    let expected = [RebuildOutcome::Left(NotRebuilt::OtherPlacement); 2];
    assert_eq!(rebuild(&after, of_other), expected);
    let store = &world.stores[0].fs;
    let names = after.placed.stored("s0", 0).unwrap().names;
    let data_file = comity_vfs::Name::new(&names[0]).unwrap();
    let labelled = store.lookup(&root(), &store.root(), data_file).unwrap().node.handle;
    let label = store.getxattr(&root(), &labelled, name(LABEL)).unwrap();
    let how = Create::Unchecked(SetAttr::default());
    let copy = "0123456789abcdef0123456789abcdef";
    let copy = store.create(&root(), &store.root(), name(copy), &how).unwrap().value.handle;
    store.setxattr(&root(), &copy, name(LABEL), Some(&label), XattrMode::Create).unwrap();
    let found = after.placed.rebuild("s0", 0, CHANGES).unwrap().files;
    let outcomes: Vec<_> = found.iter().map(|file| file.outcome).collect();
    assert!(outcomes.contains(&RebuildOutcome::Left(NotRebuilt::ForeignLabel)), "{outcomes:?}");
    assert!(outcomes.contains(&RebuildOutcome::Created));
}

#[test]
fn a_label_waits_for_a_data_server_that_is_down() {
    let world = World::in_memory(2);
    let how = Create::Unchecked(SetAttr::default());
    let placed = &world.placed;
    let made = placed.create(&root(), &placed.root(), name("f"), &how).unwrap();
    placed.write(&root(), &made.value.handle, 0, &bytes()).unwrap();
    world.stores[1].is_down.store(true, Ordering::Relaxed);
    placed.write_labels();
    assert_eq!(placed.rebuild("s1", 0, CHANGES), Err(Status::Delay));
    world.stores[1].is_down.store(false, Ordering::Relaxed);
    placed.write_labels();
    assert_eq!(rebuild(&world, CHANGES), [RebuildOutcome::Kept; 2]);
}

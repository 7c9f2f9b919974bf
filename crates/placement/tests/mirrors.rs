//! Mirrored files: a mirror that fails is broken for a file, and the others are used.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{
    Create, Distribution, FileType, Fs, Handle, MirrorFile, MovedFile, Placement, ReadInto, Result,
    SetAttr, Status, StripeFault,
};
use common::{World, memory, name, root};

fn world() -> World {
    World::mirrored(memory(), vec![memory(), memory()])
}

/// The placement as another process of the server has it.
fn restarted(world: &World) -> World {
    let stores = world.stores.iter().map(|store| Arc::clone(&store.fs)).collect();
    World::mirrored(Arc::clone(&world.below), stores)
}

fn make(world: &World, called: &str) -> Handle {
    let how = Create::Unchecked(SetAttr::default());
    let made = world.placed.create(&root(), &world.placed.root(), name(called), &how).unwrap();
    made.value.handle
}

fn write(world: &World, file: &Handle, offset: u64, data: &[u8]) -> Result<()> {
    world.placed.write(&root(), file, offset, data).map(drop)
}

fn read(world: &World, file: &Handle) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    world.placed.read(&root(), file, 0, 1 << 20, &mut ReadInto::new(&mut bytes))?;
    Ok(bytes)
}

fn set_down(world: &World, at: usize, is_down: bool) {
    world.stores[at].is_down.store(is_down, Ordering::Relaxed);
}

/// The content of the only data file on a data server.
fn stored(world: &World, at: usize) -> Vec<u8> {
    let page = world.placed.check(&world.placed.root(), 0).unwrap();
    let called = page.files[0].stored_name.clone().unwrap();
    let fs = &world.stores[at].fs;
    let file = fs.lookup(&root(), &fs.root(), name(&called)).unwrap().node;
    assert_eq!(file.attr.file_type, FileType::Regular);
    let mut bytes = Vec::new();
    fs.read(&root(), &file.handle, 0, 1 << 20, &mut ReadInto::new(&mut bytes)).unwrap();
    bytes
}

/// Removes the only data file directly on a data server, without the metadata server.
fn lose(world: &World, at: usize) {
    let page = world.placed.check(&world.placed.root(), 0).unwrap();
    let called = page.files[0].stored_name.clone().unwrap();
    let fs = &world.stores[at].fs;
    fs.remove(&root(), &fs.root(), name(&called)).unwrap();
    fs.release_removed();
}

/// Shortens the only data file directly on a data server, without the metadata server.
fn shorten(world: &World, at: usize, size: u64) {
    let page = world.placed.check(&world.placed.root(), 0).unwrap();
    let called = page.files[0].stored_name.clone().unwrap();
    let fs = &world.stores[at].fs;
    let file = fs.lookup(&root(), &fs.root(), name(&called)).unwrap().node.handle;
    let set = SetAttr { size: Some(size), ..SetAttr::default() };
    fs.setattr(&root(), &file, &set, None).unwrap();
}

/// The numbers of files with a broken mirror on each data server.
fn broken(world: &World) -> Vec<u64> {
    world.placed.servers().iter().map(|server| server.broken_files).collect()
}

fn mirrors(world: &World, file: &Handle, writes: bool) -> Result<Vec<MirrorFile>> {
    match world.placed.distribution(file, writes)? {
        Some(Distribution::Mirrors(mirrors)) => Ok(mirrors),
        other => panic!("{other:?}"),
    }
}

/// Returns whether one of the data files belongs to the ids of a mirror.
fn is_owned(world: &World, mirror: &MirrorFile) -> bool {
    let file = Handle::new(&mirror.handle).unwrap();
    let found = world.stores.iter().filter_map(|store| store.fs.getattr(&file).ok());
    let owners = found.map(|attr| (attr.uid.number(), attr.gid.number(), attr.mode.bits()));
    owners.into_iter().any(|owner| owner == (mirror.uid, mirror.gid, 0o640))
}

#[test]
fn each_data_server_has_all_bytes() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"whole").unwrap();
    write(&world, &file, 3, b"lly").unwrap();
    assert_eq!([stored(&world, 0), stored(&world, 1)], [b"wholly", b"wholly"]);
    let set = SetAttr { size: Some(2), ..SetAttr::default() };
    world.placed.setattr(&root(), &file, &set, None).unwrap();
    assert_eq!([stored(&world, 0), stored(&world, 1)], [b"wh", b"wh"]);
    assert_eq!(read(&world, &file).unwrap(), b"wh");
}

/// Counts writes, and delays every other one by a time in which a later one passes it.
struct Overtaken(Arc<AtomicUsize>);

impl Hook for Overtaken {
    fn around<T>(&self, verb: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if verb == Verb::Write && self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            thread::sleep(Duration::from_millis(60));
        }
        work()
    }
}

#[test]
fn writes_reach_all_mirrors_in_the_same_order() {
    // Half of the files are written to the slow data server last.
    for _ in 0..8 {
        let begun = Arc::<AtomicUsize>::default();
        let slow = Layer::new(memory(), Overtaken(Arc::clone(&begun)));
        let world = World::mirrored(memory(), vec![memory(), Arc::new(slow)]);
        let file = make(&world, "f");
        mirrors(&world, &file, false).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| write(&world, &file, 0, b"first").unwrap());
            let deadline = Instant::now() + Duration::from_secs(10);
            while begun.load(Ordering::Relaxed) == 0 {
                assert!(Instant::now() < deadline, "the slow data server is not written to");
                thread::yield_now();
            }
            scope.spawn(|| write(&world, &file, 0, b"later").unwrap());
        });
        assert_eq!(stored(&world, 0), stored(&world, 1));
    }
}

#[test]
fn a_file_is_read_from_either_mirror() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"whole").unwrap();
    for down in [0, 1] {
        set_down(&world, down, true);
        assert_eq!(read(&world, &file).unwrap(), b"whole");
        set_down(&world, down, false);
    }
    assert_eq!(broken(&world), [0, 0], "reading changes nothing");
    (0..2).for_each(|at| set_down(&world, at, true));
    assert_eq!(read(&world, &file), Err(Status::Delay));
}

#[test]
fn a_write_goes_on_without_a_mirror_that_is_not_read_any_more() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"old").unwrap();
    set_down(&world, 1, true);
    write(&world, &file, 0, b"new").unwrap();
    world.placed.commit(&file).unwrap();
    set_down(&world, 1, false);
    assert_eq!([stored(&world, 0), stored(&world, 1)], [b"new", b"old"]);
    assert_eq!(read(&world, &file).unwrap(), b"new");
    assert_eq!(broken(&world), [0, 1]);
    write(&world, &file, 0, b"NEW").unwrap();
    assert_eq!(stored(&world, 1), b"old", "a broken mirror is not written");
    // Another process of the server reads the place from the file.
    assert_eq!(read(&restarted(&world), &file).unwrap(), b"NEW");
}

#[test]
fn the_last_mirror_stays_in_use() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"old").unwrap();
    set_down(&world, 1, true);
    write(&world, &file, 0, b"new").unwrap();
    set_down(&world, 0, true);
    assert_eq!(write(&world, &file, 0, b"lost"), Err(Status::Delay));
    set_down(&world, 0, false);
    assert_eq!(read(&world, &file).unwrap(), b"new");
    let device = mirrors(&world, &file, true).unwrap()[0].device;
    world.placed.note_mirror_error(&file, &device).unwrap();
    assert_eq!(broken(&world), [0, 1]);
}

#[test]
fn a_mirror_that_lost_its_data_file_is_not_taken_for_an_empty_one() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"whole").unwrap();
    lose(&world, 0);
    assert_eq!(read(&world, &file).unwrap(), b"whole");
    write(&world, &file, 0, b"W").unwrap();
    assert_eq!(broken(&world), [1, 0]);
    assert_eq!(read(&world, &file).unwrap(), b"Whole");
}

#[test]
fn a_mirror_that_may_have_the_only_bytes_is_awaited() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"whole").unwrap();
    lose(&world, 0);
    set_down(&world, 1, true);
    let again = restarted(&world);
    set_down(&again, 1, true);
    assert_eq!(again.placed.commit(&file), Err(Status::Delay));
    assert_eq!(write(&again, &file, 0, b"W"), Err(Status::Delay));
    assert_eq!(read(&again, &file), Err(Status::Delay));
    assert_eq!(mirrors(&again, &file, true), Err(Status::Delay));
    assert_eq!(broken(&again), [0, 0]);
    set_down(&again, 1, false);
    assert_eq!(read(&again, &file).unwrap(), b"whole");
}

#[test]
fn a_new_file_does_without_a_data_server_that_does_not_answer() {
    let world = world();
    set_down(&world, 0, true);
    let file = make(&world, "f");
    write(&world, &file, 0, b"whole").unwrap();
    assert_eq!(broken(&world), [1, 0]);
    assert_eq!(stored(&world, 1), b"whole");
    let three = World::mirrored(memory(), vec![memory(), memory(), memory()]);
    set_down(&three, 0, true);
    write(&three, &make(&three, "f"), 0, b"whole").unwrap();
    assert_eq!(broken(&three), [0, 0, 0]);
    assert_eq!([stored(&three, 1), stored(&three, 2)], [b"whole", b"whole"]);
}

#[test]
fn an_empty_file_of_which_a_data_server_was_down_is_written_to_both() {
    let world = world();
    let file = make(&world, "f");
    set_down(&world, 1, true);
    assert_eq!(mirrors(&world, &file, false).unwrap().len(), 1);
    set_down(&world, 1, false);
    write(&world, &file, 0, b"whole").unwrap();
    assert_eq!([stored(&world, 0), stored(&world, 1)], [b"whole", b"whole"]);
    assert_eq!(broken(&world), [0, 0]);
}

#[test]
fn a_layout_names_ids_that_own_the_data_files() {
    let world = world();
    let file = make(&world, "f");
    let writing = mirrors(&world, &file, true).unwrap();
    assert_eq!(writing.len(), 2);
    assert!(writing.iter().all(|mirror| is_owned(&world, mirror)));
    assert_ne!(writing[0].device, writing[1].device);
    assert_eq!(mirrors(&world, &file, true).unwrap(), writing, "layouts share the ids");
    let reading = mirrors(&world, &file, false).unwrap();
    for (reader, writer) in reading.iter().zip(&writing) {
        assert_ne!(reader.uid, writer.uid, "a reader does not own the data file");
        assert_eq!((reader.gid, &reader.handle), (writer.gid, &writer.handle));
    }
}

#[test]
fn a_fence_takes_the_data_files_from_those_who_had_a_layout() {
    let world = world();
    let file = make(&world, "f");
    let before = mirrors(&world, &file, true).unwrap();
    let is_owned = |mirror: &MirrorFile| is_owned(&world, mirror);
    assert!(before.iter().all(is_owned));
    world.placed.fence(&file).unwrap();
    assert!(!before.iter().any(is_owned));
    let after = mirrors(&world, &file, true).unwrap();
    assert!(after.iter().all(is_owned) && !before.iter().any(is_owned));
    let set = SetAttr { uid: Some(comity_vfs::Uid::new(5)), ..SetAttr::default() };
    world.placed.setattr(&root(), &file, &set, None).unwrap();
    assert!(!after.iter().any(is_owned), "another owner of the file has other rights");
}

#[test]
fn another_process_gives_the_data_files_other_owners() {
    let world = world();
    let file = make(&world, "f");
    let before = mirrors(&world, &file, true).unwrap();
    let again = restarted(&world);
    let after = mirrors(&again, &file, true).unwrap();
    assert!(!before.iter().any(|mirror| is_owned(&again, mirror)));
    assert!(after.iter().all(|mirror| is_owned(&again, mirror)));
}

#[test]
fn layouts_that_name_a_broken_mirror_are_recalled_before_a_change_goes_on() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"old").unwrap();
    let given = world.placed.distribution(&file, false).unwrap().unwrap();
    assert!(world.placed.is_current(&file, &given));
    set_down(&world, 0, true);
    assert_eq!(write(&world, &file, 0, b"new"), Err(Status::Delay));
    assert!(!world.placed.is_current(&file, &given), "it names a broken mirror");
    assert_eq!(write(&world, &file, 0, b"new"), Err(Status::Delay));
    assert_eq!(mirrors(&world, &file, false), Err(Status::Delay));
    assert_eq!(world.placed.poll_broken_mirror(), Some(file));
    world.placed.layouts_recalled(&file, false);
    assert_eq!(write(&world, &file, 0, b"new"), Err(Status::Delay));
    assert_eq!(world.placed.poll_broken_mirror(), Some(file));
    world.placed.layouts_recalled(&file, true);
    write(&world, &file, 0, b"new").unwrap();
    assert_eq!(mirrors(&world, &file, false).unwrap().len(), 1);
    assert_eq!(world.placed.poll_broken_mirror(), None);
}

#[test]
fn a_commit_and_a_truncation_wait_for_the_recall() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"whole").unwrap();
    let given = mirrors(&world, &file, true).unwrap();
    world.placed.note_mirror_error(&file, &given[0].device).unwrap();
    let cut = || {
        let set = SetAttr { size: Some(2), ..SetAttr::default() };
        world.placed.setattr(&root(), &file, &set, None).map(drop)
    };
    assert_eq!(world.placed.commit(&file).err(), Some(Status::Delay));
    assert_eq!(cut(), Err(Status::Delay));
    assert_eq!(read(&world, &file).unwrap(), b"whole", "the size is as before");
    world.placed.fence(&file).unwrap();
    world.placed.layouts_recalled(&file, true);
    world.placed.commit(&file).unwrap();
    cut().unwrap();
    assert_eq!(read(&world, &file).unwrap(), b"wh");
}

#[test]
fn an_error_that_a_client_reports_breaks_the_mirror_that_it_names() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"whole").unwrap();
    let given = mirrors(&world, &file, true).unwrap();
    world.placed.note_mirror_error(&file, &[9; 16]).unwrap();
    assert_eq!(broken(&world), [0, 0], "the file has no mirror on that device");
    world.placed.note_mirror_error(&file, &given[0].device).unwrap();
    world.placed.layouts_recalled(&world.placed.poll_broken_mirror().unwrap(), true);
    let left = mirrors(&world, &file, true).unwrap();
    assert_eq!(left.iter().map(|it| it.device).collect::<Vec<_>>(), [given[1].device]);
    let page = world.placed.check(&world.placed.root(), 0).unwrap();
    let faults: Vec<StripeFault> = page.files[0].faults.iter().map(|(_, fault)| *fault).collect();
    assert_eq!(faults, [StripeFault::BrokenMirror]);
}

#[test]
fn an_error_of_a_read_breaks_only_a_mirror_that_lacks_bytes() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"whole").unwrap();
    let given = mirrors(&world, &file, false).unwrap();
    let at = server_of(&world, &given[0]);
    let report = |offset| {
        world.placed.note_mirror_read_error(&file, &given[0].device, (offset, u64::MAX)).unwrap();
    };
    report(0);
    report(u64::MAX);
    set_down(&world, at, true);
    report(0);
    set_down(&world, at, false);
    assert_eq!(broken(&world), [0, 0], "the mirror is whole");
    shorten(&world, at, 2);
    report(0);
    assert_eq!(broken(&world)[at], 1);
}

#[test]
fn a_degraded_file_gets_whole_mirrors_when_enough_data_servers_answer() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"old").unwrap();
    set_down(&world, 1, true);
    write(&world, &file, 0, b"new").unwrap();
    let resilver = || world.placed.move_file(&file, &|| Ok(()), &|_| ());
    assert_eq!(resilver(), Err(Status::Delay));
    set_down(&world, 1, false);
    assert_eq!(resilver(), Ok(MovedFile::Moved { bytes: 3, has_gaps: false }));
    assert_eq!(resilver(), Ok(MovedFile::Stayed));
    assert_eq!([stored(&world, 0), stored(&world, 1)], [b"new", b"new"]);
    assert_eq!(broken(&world), [0, 0]);
    let names = |at: usize| world.placed.stored(&format!("s{at}"), 0).unwrap().names.len();
    assert_eq!([names(0), names(1)], [1, 1], "the old data files are removed");
}

#[test]
fn a_mirror_that_a_dead_client_has_not_extended_is_broken() {
    for longer in [0, 1] {
        let world = world();
        let file = make(&world, "f");
        write(&world, &file, 0, b"whole").unwrap();
        let given = mirrors(&world, &file, true).unwrap();
        let (at, handle) =
            (server_of(&world, &given[longer]), Handle::new(&given[longer].handle).unwrap());
        world.placed.learn_size(&file).unwrap();
        assert_eq!(broken(&world), [0, 0], "both have the same length");
        world.stores[at].fs.write(&root(), &handle, 5, b"more").unwrap();
        world.placed.fence(&file).unwrap();
        world.placed.learn_size(&file).unwrap();
        assert_eq!(broken(&world)[1 - at], 1);
        assert_eq!(read(&world, &file).unwrap(), b"wholemore");
    }
}

/// The number of the data server that has a mirror.
fn server_of(world: &World, mirror: &MirrorFile) -> usize {
    let file = Handle::new(&mirror.handle).unwrap();
    world.stores.iter().position(|store| store.fs.getattr(&file).is_ok()).unwrap()
}

#[test]
fn a_file_is_not_copied_from_a_mirror_that_breaks_while_its_layouts_are_recalled() {
    for stale in [0, 1] {
        let world = World::mirrored(memory(), vec![memory(), memory(), memory()]);
        let file = make(&world, "f");
        write(&world, &file, 0, b"old").unwrap();
        let given = mirrors(&world, &file, true).unwrap();
        let whole = &given[1 - stale];
        let (at, handle) = (server_of(&world, whole), Handle::new(&whole.handle).unwrap());
        world.stores[at].fs.write(&root(), &handle, 0, b"new").unwrap();
        let mut settings = world.placed.settings().clone();
        settings.servers[at].is_draining = true;
        let placed = world.placed.with(settings);
        let clear = || placed.note_mirror_error(&file, &given[stale].device);
        placed.move_file(&file, &clear, &|_| ()).unwrap();
        assert_eq!(read(&world, &file).unwrap(), b"new", "{stale}");
    }
}

#[test]
fn a_commit_breaks_a_mirror_whose_data_file_is_gone() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"whole").unwrap();
    lose(&world, 0);
    world.placed.commit(&file).unwrap();
    assert_eq!(broken(&world), [1, 0]);
    lose(&world, 1);
    assert_eq!(world.placed.commit(&file).err(), Some(Status::Io), "no data file is left");
}

#[test]
fn a_mirror_that_is_too_short_is_not_read_as_zeros() {
    for short in [0, 1] {
        let world = world();
        let file = make(&world, "f");
        write(&world, &file, 0, b"whole").unwrap();
        shorten(&world, short, 2);
        assert_eq!(read(&world, &file).unwrap(), b"whole", "{short}");
    }
}

#[test]
fn a_move_copies_the_mirror_that_has_all_bytes() {
    for (short, is_lost) in [(0, false), (1, false), (0, true), (1, true)] {
        let world = World::mirrored(memory(), vec![memory(), memory(), memory()]);
        let file = make(&world, "f");
        write(&world, &file, 0, b"whole").unwrap();
        let servers = world.placed.check(&world.placed.root(), 0).unwrap().files[0].servers.clone();
        let at: usize = servers[short][1..].parse().unwrap();
        let mut settings = world.placed.settings().clone();
        settings.servers[at].is_draining = true;
        if is_lost {
            lose(&world, at)
        } else {
            shorten(&world, at, 2)
        }
        let placed = world.placed.with(settings);
        let moved = placed.move_file(&file, &|| Ok(()), &|_| ());
        assert_eq!(moved, Ok(MovedFile::Moved { bytes: 5, has_gaps: false }), "{short} {is_lost}");
        assert_eq!(read(&world, &file).unwrap(), b"whole", "{short} {is_lost}");
    }
}

#[test]
fn a_degraded_file_whose_last_data_file_is_lost_is_not_read_as_zeros() {
    let world = world();
    let file = make(&world, "f");
    write(&world, &file, 0, b"old").unwrap();
    set_down(&world, 1, true);
    write(&world, &file, 0, b"new").unwrap();
    set_down(&world, 1, false);
    lose(&world, 0);
    assert_eq!(read(&world, &file), Err(Status::Io));
}

#[test]
fn a_removed_file_leaves_no_data_file() {
    let world = world();
    write(&world, &make(&world, "f"), 0, b"whole").unwrap();
    world.placed.remove(&root(), &world.placed.root(), name("f")).unwrap();
    let names = |at: usize| world.placed.stored(&format!("s{at}"), 0).unwrap().names.len();
    assert_eq!([names(0), names(1)], [0, 0]);
}

//! A resilver makes the mirrors that a file lacks, and leaves the good ones alone.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use comity_placement::{DataServer, Placed, PlacementSettings};
use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{
    CheckedFile, Create, Fs, Handle, MovedFile, Placement, ReadInto, Result, SetAttr, Status,
    StripeFault,
};
use common::{World, memory, name, root};

/// Counts the calls that change data files or their names.
#[derive(Clone, Default)]
struct Changes(Arc<AtomicUsize>);

impl Hook for Changes {
    fn around<T>(&self, verb: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if matches!(verb, Verb::Write | Verb::Create | Verb::Remove | Verb::Rename) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        work()
    }
}

/// A placement with two mirrors on these data servers, which count their changes.
fn world(servers: usize) -> (World, Vec<Changes>) {
    let changes: Vec<Changes> = (0..servers).map(|_| Changes::default()).collect();
    let store = |it: &Changes| -> Arc<dyn Fs> { Arc::new(Layer::new(memory(), it.clone())) };
    (World::mirrored(memory(), changes.iter().map(store).collect()), changes)
}

/// The placement after a reload that changes its settings.
fn reloaded(world: &World, change: impl FnOnce(&mut PlacementSettings)) -> Placed {
    let mut settings = world.placed.settings().clone();
    change(&mut settings);
    world.placed.with(settings)
}

fn make(placed: &Placed, data: &[u8]) -> Handle {
    let how = Create::Unchecked(SetAttr::default());
    let made = placed.create(&root(), &placed.root(), name("f"), &how).unwrap().value.handle;
    placed.write(&root(), &made, 0, data).unwrap();
    made
}

fn read(placed: &Placed, file: &Handle) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    placed.read(&root(), file, 0, 1 << 20, &mut ReadInto::new(&mut bytes))?;
    Ok(bytes)
}

fn set_down(world: &World, at: usize, is_down: bool) {
    world.stores[at].is_down.store(is_down, Ordering::Relaxed);
}

fn resilver(placed: &Placed, file: &Handle) -> Result<MovedFile> {
    placed.move_file(file, &|| Ok(()), &|_| ())
}

fn moved(bytes: u64) -> Result<MovedFile> {
    Ok(MovedFile::Moved { bytes, has_gaps: false })
}

/// The only file as a check finds it.
fn checked(placed: &Placed) -> CheckedFile {
    placed.check(&placed.root(), 0).unwrap().files.remove(0)
}

/// The numbers of the data servers of the only file.
fn servers(placed: &Placed) -> Vec<usize> {
    checked(placed).servers.iter().map(|name| name[1..].parse().unwrap()).collect()
}

/// The number of the only data server that has no mirror of the only file.
fn spare(world: &World) -> usize {
    let used = servers(&world.placed);
    (0..world.stores.len()).find(|at| !used.contains(at)).unwrap()
}

/// The content of all data files on a data server.
fn stored(world: &World, at: usize) -> Vec<Vec<u8>> {
    let fs = &world.stores[at].fs;
    let names = world.placed.stored(&format!("s{at}"), 0).unwrap().names;
    let content = |called: Box<[u8]>| {
        let called = comity_vfs::Name::new(&called).unwrap();
        let file = fs.lookup(&root(), &fs.root(), called).unwrap().node.handle;
        let mut bytes = Vec::new();
        fs.read(&root(), &file, 0, 1 << 20, &mut ReadInto::new(&mut bytes)).unwrap();
        bytes
    };
    names.into_iter().map(content).collect()
}

/// Writes to a file of which a mirror is down.
fn degrade(world: &World, file: &Handle, at: usize, data: &[u8]) {
    set_down(world, at, true);
    world.placed.write(&root(), file, 0, data).unwrap();
    assert_eq!(checked(&world.placed).faults[0].1, StripeFault::BrokenMirror);
}

#[test]
fn a_resilver_writes_only_the_broken_mirror() {
    let (world, changes) = world(2);
    for broken in [0, 1] {
        let file = make(&world.placed, b"a long old text");
        degrade(&world, &file, broken, b"new");
        set_down(&world, broken, false);
        let before = checked(&world.placed).stored_name;
        let good = changes[1 - broken].0.load(Ordering::Relaxed);
        assert_eq!(resilver(&world.placed, &file), moved(15));
        assert_eq!(changes[1 - broken].0.load(Ordering::Relaxed), good);
        assert_eq!((checked(&world.placed).stored_name, servers(&world.placed).len()), (before, 2));
        for at in [0, 1] {
            assert_eq!(stored(&world, at), [b"newong old text"]);
        }
        assert_eq!(checked(&world.placed).faults, []);
        world.placed.remove(&root(), &world.placed.root(), name("f")).unwrap();
    }
}

#[test]
fn a_file_whose_mirrors_are_good_is_not_touched() {
    let (world, changes) = world(3);
    let file = make(&world.placed, b"whole");
    let before: Vec<usize> = changes.iter().map(|it| it.0.load(Ordering::Relaxed)).collect();
    let is_asked = AtomicUsize::new(0);
    let clear = || {
        is_asked.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    let fewer = reloaded(&world, |settings| settings.mirrors = Some(1));
    for placed in [&world.placed, &fewer] {
        assert_eq!(placed.move_file(&file, &clear, &|_| ()), Ok(MovedFile::Stayed));
        assert_eq!(checked(placed).faults, []);
    }
    assert_eq!(is_asked.into_inner(), 0, "no layout is recalled");
    let after: Vec<usize> = changes.iter().map(|it| it.0.load(Ordering::Relaxed)).collect();
    assert_eq!(after, before);
}

#[test]
fn a_mirror_of_a_lost_data_server_is_made_on_another_one() {
    for lost in [0, 1] {
        let (world, _) = world(3);
        let file = make(&world.placed, b"old");
        let (gone, good) = (servers(&world.placed)[lost], servers(&world.placed)[1 - lost]);
        let spare = spare(&world);
        degrade(&world, &file, gone, b"new");
        assert_eq!(resilver(&world.placed, &file), moved(3));
        let mut now = servers(&world.placed);
        now.sort_unstable();
        let mut expected = [good, spare];
        expected.sort_unstable();
        assert_eq!(now, expected);
        world.placed.write(&root(), &file, 0, b"N").unwrap();
        assert_eq!([stored(&world, good), stored(&world, spare)], [[b"New"], [b"New"]]);
        set_down(&world, good, true);
        assert_eq!(read(&world.placed, &file).unwrap(), b"New");
        set_down(&world, good, false);
        // The old data file is one that the file does not name: a check finds it as orphaned.
        set_down(&world, gone, false);
        assert_eq!(stored(&world, gone), [b"old"]);
        // The file comes back to that data server, where the old data file is replaced.
        degrade(&world, &file, spare, b"newer text");
        assert_eq!(resilver(&world.placed, &file), moved(10));
        assert_eq!(stored(&world, gone), [b"newer text"]);
        assert_eq!(checked(&world.placed).faults, []);
    }
}

#[test]
fn a_mirror_that_was_broken_when_the_file_was_emptied_is_empty() {
    let (world, _) = world(2);
    let file = make(&world.placed, b"old text");
    set_down(&world, 1, true);
    let set = SetAttr { size: Some(0), ..SetAttr::default() };
    world.placed.setattr(&root(), &file, &set, None).unwrap();
    set_down(&world, 1, false);
    assert_eq!(stored(&world, 1), [b"old text"]);
    assert_eq!(resilver(&world.placed, &file), moved(0));
    assert_eq!([stored(&world, 0), stored(&world, 1)], [[b""], [b""]]);
    world.placed.commit(&file).unwrap();
    assert_eq!(checked(&world.placed).faults, []);
    set_down(&world, 0, true);
    world.placed.write(&root(), &file, 0, b"new").unwrap();
    assert_eq!(read(&world.placed, &file).unwrap(), b"new");
}

#[test]
fn a_file_gets_the_mirrors_that_the_placement_asks_for_now() {
    let (world, changes) = world(3);
    let file = make(&world.placed, b"whole");
    let used = servers(&world.placed);
    let more = reloaded(&world, |settings| settings.mirrors = Some(3));
    assert_eq!(checked(&more).faults, [(None, StripeFault::FewMirrors { has: 2, wants: 3 })]);
    let before = changes[used[0]].0.load(Ordering::Relaxed);
    assert_eq!(resilver(&more, &file), moved(5));
    assert_eq!(changes[used[0]].0.load(Ordering::Relaxed), before);
    assert_eq!((servers(&more).len(), checked(&more).faults.len()), (3, 0));
    assert!((0..3).all(|at| stored(&world, at) == [b"whole"]));
}

#[test]
fn a_broken_mirror_that_the_placement_does_not_ask_for_is_given_up() {
    let (world, _) = world(3);
    let more = reloaded(&world, |settings| settings.mirrors = Some(3));
    let file = make(&more, b"old");
    set_down(&world, 0, true);
    more.write(&root(), &file, 0, b"new").unwrap();
    assert_eq!(resilver(&more, &file), Err(Status::Delay), "no other data server is left");
    let two = more.with(PlacementSettings { mirrors: Some(2), ..more.settings().clone() });
    assert_eq!(resilver(&two, &file), moved(0));
    assert_eq!((servers(&two).len(), checked(&two).faults.len()), (2, 0));
    assert!(!servers(&two).contains(&0));
    two.write(&root(), &file, 0, b"N").unwrap();
    assert_eq!([stored(&world, 1), stored(&world, 2)], [[b"New"], [b"New"]]);
}

#[test]
fn a_drain_moves_only_the_mirror_on_the_data_server() {
    let (world, changes) = world(3);
    let file = make(&world.placed, b"whole");
    let [drained, good] = servers(&world.placed)[..] else { panic!("two mirrors") };
    let draining = reloaded(&world, |it| it.servers[drained].is_draining = true);
    let before = changes[good].0.load(Ordering::Relaxed);
    assert_eq!(resilver(&draining, &file), moved(5));
    assert_eq!(changes[good].0.load(Ordering::Relaxed), before);
    assert_eq!(stored(&world, drained), [] as [Vec<u8>; 0]);
    assert_eq!(read(&draining, &file).unwrap(), b"whole");
    assert_eq!(checked(&draining).faults, []);
}

#[test]
fn a_mirror_that_stays_gets_the_length_of_the_file_as_a_new_one_does() {
    for (length, size) in [(4_u64, 10_u64), (20, 10), (20, 0)] {
        let (world, _) = world(2);
        let file = make(&world.placed, b"data");
        degrade(&world, &file, 1, b"DATA");
        set_down(&world, 1, false);
        // A hole at the end of a file is not written, and a program on this server may cut a file.
        let set = |size| SetAttr { size: Some(size), ..SetAttr::default() };
        world.below.setattr(&root(), &file, &set(size), None).unwrap();
        let fs = &world.stores[0].fs;
        let called = checked(&world.placed).stored_name.unwrap();
        let kept = fs.lookup(&root(), &fs.root(), name(&called)).unwrap().node.handle;
        fs.setattr(&root(), &kept, &set(length), None).unwrap();
        resilver(&world.placed, &file).unwrap();
        assert_eq!(checked(&world.placed).faults, [], "{length} of {size} bytes");
        let lengths = [0, 1].map(|at| stored(&world, at)[0].len() as u64);
        assert_eq!(lengths, [size, size]);
    }
}

#[test]
fn a_mirror_is_made_where_there_is_room_for_it() {
    let stores = (0..3).map(|_| memory()).collect();
    let world = World::mirrored(memory(), stores);
    let file = make(&world.placed, b"old");
    let (broken, spare) = (servers(&world.placed)[0], spare(&world));
    degrade(&world, &file, broken, b"new");
    set_down(&world, broken, false);
    world.stores[broken].bytes_available.store(2, Ordering::Relaxed);
    assert_eq!(resilver(&world.placed, &file), moved(3));
    assert!(servers(&world.placed).contains(&spare), "it has room");
}

#[test]
fn a_data_server_that_is_named_twice_keeps_the_data_files_of_a_drained_name() {
    let (world, _) = world(2);
    let one = reloaded(&world, |settings| settings.mirrors = Some(1));
    let file = make(&one, b"only copy");
    let used = servers(&one)[0];
    let renamed = one.with(PlacementSettings {
        servers: vec![
            DataServer { is_draining: true, ..one.settings().servers[used].clone() },
            DataServer { name: "again".into(), ..one.settings().servers[used].clone() },
        ],
        ..one.settings().clone()
    });
    assert_eq!(resilver(&renamed, &file), moved(9));
    assert_eq!(read(&renamed, &file).unwrap(), b"only copy");
}

/// Fails all writes.
struct Full;

impl Hook for Full {
    fn around<T>(&self, verb: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if verb == Verb::Write { Err(Status::NoSpc) } else { work() }
    }
}

#[test]
fn a_copy_that_fails_leaves_the_file_and_its_good_mirrors_as_they_were() {
    let full = Layer::new(memory(), Full);
    let world = World::mirrored(memory(), vec![memory(), Arc::new(full)]);
    let file = make(&world.placed, b"whole");
    assert_eq!(checked(&world.placed).faults.len(), 1, "one mirror is broken from the start");
    assert!(resilver(&world.placed, &file).is_err());
    assert_eq!((stored(&world, 0), stored(&world, 1).len()), (vec![b"whole".to_vec()], 0));
    assert_eq!(read(&world.placed, &file).unwrap(), b"whole");
    assert_eq!(checked(&world.placed).faults.len(), 1);
}

#[test]
fn a_client_that_knows_the_old_data_file_does_not_reach_the_new_one() {
    let (world, _) = world(2);
    let file = make(&world.placed, b"old");
    let called = checked(&world.placed).stored_name.unwrap();
    let fs = &world.stores[1].fs;
    let old = fs.lookup(&root(), &fs.root(), name(&called)).unwrap().node.handle;
    degrade(&world, &file, 1, b"new");
    set_down(&world, 1, false);
    resilver(&world.placed, &file).unwrap();
    let _ = fs.write(&root(), &old, 0, b"late");
    assert_eq!([stored(&world, 0), stored(&world, 1)], [[b"new"], [b"new"]]);
}

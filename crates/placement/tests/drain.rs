//! The move of files away from a data server.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{
    Create, Data, Fs, Handle, MovedFile, Placement, ReadInto, Result, SetAttr, Status, StripeFault,
};
use common::{UNIT, World, make, memory, name, root};

/// A file system of the metadata server and three of data servers.
struct Disks {
    below: Arc<dyn Fs>,
    stores: Vec<Arc<dyn Fs>>,
}

impl Disks {
    fn new() -> Self {
        Self { below: memory(), stores: (0..3).map(|_| memory()).collect() }
    }

    /// A server with these data servers, of which the last one is drained.
    fn draining(&self) -> World {
        World::draining(Arc::clone(&self.below), self.stores.clone(), &[2])
    }

    /// A server as it was before the drain.
    fn before(&self) -> World {
        World::over(Arc::clone(&self.below), self.stores.clone())
    }

    /// A server after the drained data server was taken out of the configuration.
    fn after(&self) -> World {
        World::over(Arc::clone(&self.below), self.stores[..2].to_vec())
    }

    /// The number of files on each data server.
    fn counts(&self) -> Vec<usize> {
        let world = self.before();
        let names = |at| world.placed.stored(&format!("s{at}"), 0).unwrap().names.len();
        (0..3).map(names).collect()
    }
}

/// Bytes of which no two stripe units are the same.
fn text() -> Vec<u8> {
    (0..5 * UNIT + 10).map(|at| (at / 7 + at / UNIT * 31) as u8 | 1).collect()
}

fn bytes_of(world: &World, file: &Handle) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = world.placed.read(&root(), file, 0, 1 << 24, &mut ReadInto::new(&mut bytes))?;
    assert!(matches!(read.data, Data::Appended(_)) && read.eof);
    Ok(bytes)
}

fn move_file(world: &World, file: &Handle) -> Result<MovedFile> {
    world.placed.move_file(file, &|| Ok(()), &|_| {})
}

#[test]
fn a_moved_file_has_the_same_bytes_and_nothing_on_the_drained_server() {
    let disks = Disks::new();
    let (file, empty) =
        (make(&disks.before().placed, "f", &text()), make(&disks.before().placed, "e", b""));
    let world = disks.draining();
    let moved = |bytes| Ok(MovedFile::Moved { bytes, has_gaps: false });
    assert_eq!(move_file(&world, &file), moved(text().len() as u64));
    assert_eq!(move_file(&world, &empty), moved(0));
    assert_eq!(move_file(&world, &file), Ok(MovedFile::Stayed), "a second run does nothing");
    assert_eq!(disks.counts(), [1, 1, 0]);
    for world in [world, disks.after()] {
        assert_eq!(bytes_of(&world, &file).unwrap(), text());
        let page = world.placed.check(&world.below.root(), 0).unwrap();
        assert!(page.files.iter().all(|file| file.faults.is_empty()), "{page:?}");
        assert!(page.files.iter().all(|file| file.servers == ["s0".into(), "s1".into()]));
    }
}

#[test]
fn new_files_are_not_placed_on_a_draining_server_and_old_ones_can_be_written_there() {
    let disks = Disks::new();
    let old = make(&disks.before().placed, "old", &text());
    let world = disks.draining();
    make(&world.placed, "new", &text());
    assert_eq!(disks.counts(), [2, 2, 1]);
    world.placed.write(&root(), &old, 2 * UNIT, b"more").unwrap();
    assert_eq!(&bytes_of(&world, &old).unwrap()[2 * UNIT as usize..][..4], b"more");
}

#[test]
fn a_hole_keeps_its_zeros_and_is_told() {
    let disks = Disks::new();
    let world = disks.before();
    let file = make(&world.placed, "f", b"");
    world.placed.write(&root(), &file, 40 * UNIT, b"end").unwrap();
    let world = disks.draining();
    let (bytes, set) = (64 * UNIT, SetAttr { size: Some(64 * UNIT), ..SetAttr::default() });
    world.placed.setattr(&root(), &file, &set, None).unwrap();
    assert_eq!(move_file(&world, &file), Ok(MovedFile::Moved { bytes, has_gaps: true }));
    let page = world.placed.check(&world.below.root(), 0).unwrap();
    assert_eq!(page.files[0].faults, [], "the data files have the length that they must have");
    let found = bytes_of(&disks.after(), &file).unwrap();
    let mut expected = vec![0; bytes as usize];
    expected[40 * UNIT as usize..][..3].copy_from_slice(b"end");
    assert!(found == expected);
}

#[test]
fn layouts_that_clients_still_have_keep_a_file_where_it_is() {
    let disks = Disks::new();
    let file = make(&disks.before().placed, "f", &text());
    let world = disks.draining();
    let refused = world.placed.move_file(&file, &|| Err(Status::Delay), &|_| {});
    assert_eq!(refused, Err(Status::Delay));
    assert_eq!(disks.counts(), [1, 1, 1]);
    world.placed.write(&root(), &file, 0, b"goes on").unwrap();
}

#[test]
fn changes_wait_while_a_file_moves_and_reads_go_on() {
    let disks = Disks::new();
    let file = make(&disks.before().placed, "f", &text());
    let world = disks.draining();
    let (fs, top) = (&world.placed, world.placed.root());
    let size = SetAttr { size: Some(0), ..SetAttr::default() };
    let was_called = AtomicBool::new(false);
    let during = |_| {
        was_called.store(true, Ordering::Relaxed);
        assert_eq!(fs.write(&root(), &file, 0, b"x").err(), Some(Status::Delay));
        assert_eq!(fs.setattr(&root(), &file, &size, None).err(), Some(Status::Delay));
        let how = Create::Unchecked(size);
        assert_eq!(fs.create(&root(), &top, name("f"), &how).err(), Some(Status::Delay));
        assert_eq!(fs.remove(&root(), &top, name("f")).err(), Some(Status::Delay));
        assert_eq!(fs.distribution(&file, true).err(), Some(Status::Delay));
        assert_eq!(fs.note_written(&file, Some(1 << 30)).err(), Some(Status::Delay));
        assert_eq!(move_file(&world, &file), Err(Status::Delay), "one move at a time");
        assert_eq!(bytes_of(&world, &file).unwrap(), text());
    };
    fs.move_file(&file, &|| Ok(()), &during).unwrap();
    assert!(was_called.load(Ordering::Relaxed));
    assert_eq!(bytes_of(&world, &file).unwrap(), text());
    fs.write(&root(), &file, 0, b"x").unwrap();
}

#[test]
fn handles_of_earlier_layouts_are_fenced_before_the_first_byte_is_copied() {
    let disks = Disks::new();
    let file = make(&disks.before().placed, "f", &text());
    let world = disks.draining();
    let fence = || {
        let data_file = world.placed.stored("s2", 0).unwrap().names[0].clone();
        let fs = &disks.stores[2];
        let found = fs.lookup(&root(), &fs.root(), name(str::from_utf8(&data_file).unwrap()));
        fs.getxattr(&root(), &found.unwrap().node.handle, name("comity.fence"))
    };
    assert_eq!(fence(), Err(Status::NoXattr));
    let during = |_| assert_eq!(fence(), Ok(1_u64.to_be_bytes().to_vec()));
    world.placed.move_file(&file, &|| Ok(()), &during).unwrap();
}

#[test]
fn a_size_that_a_program_on_the_server_changes_meanwhile_ends_the_move() {
    let disks = Disks::new();
    let file = make(&disks.before().placed, "f", &text());
    let world = disks.draining();
    let set = SetAttr { size: Some(9 * UNIT), ..SetAttr::default() };
    let change = |_| assert!(disks.below.setattr(&root(), &file, &set, None).is_ok());
    assert_eq!(world.placed.move_file(&file, &|| Ok(()), &change), Err(Status::Delay));
    assert_eq!(disks.counts(), [1, 1, 1], "the copy is removed");
    assert!(bytes_of(&world, &file).unwrap().starts_with(&text()));
}

#[test]
fn a_data_server_that_fails_in_the_middle_leaves_the_old_place_in_force() {
    for lost in 0..3 {
        let disks = Disks::new();
        let file = make(&disks.before().placed, "f", &vec![1; 3 << 20]);
        let world = disks.draining();
        let lose = |_| world.stores[lost].is_down.store(true, Ordering::Relaxed);
        assert_eq!(world.placed.move_file(&file, &|| Ok(()), &lose), Err(Status::Delay));
        world.stores[lost].is_down.store(false, Ordering::Relaxed);
        assert_eq!(bytes_of(&world, &file).unwrap(), vec![1; 3 << 20]);
        world.placed.write(&root(), &file, 2 * UNIT, b"more").unwrap();
        assert!(matches!(move_file(&world, &file), Ok(MovedFile::Moved { .. })));
        assert_eq!(&bytes_of(&disks.after(), &file).unwrap()[2 * UNIT as usize..][..4], b"more");
    }
}

/// Calls of file systems, which have numbers.
type SeenCalls = Arc<Mutex<Vec<(usize, Verb)>>>;

/// The calls of all file systems of a world, in order. After a number of calls all fail, as if the
/// server had died.
#[derive(Clone)]
struct Calls {
    left: Arc<AtomicUsize>,
    seen: SeenCalls,
    /// The number of the file system.
    of: usize,
}

impl Hook for Calls {
    fn around<T>(&self, verb: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let left = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
            return Err(Status::Io);
        }
        self.seen.lock().unwrap().push((self.of, verb));
        work()
    }
}

/// A draining server that dies after a number of calls, and its calls. The metadata server's file
/// system has the number 3.
fn mortal(disks: &Disks, calls: usize) -> (World, SeenCalls) {
    let (left, seen) = (Arc::new(AtomicUsize::new(calls)), SeenCalls::default());
    let layer = |(of, fs): (usize, &Arc<dyn Fs>)| -> Arc<dyn Fs> {
        let hook = Calls { left: Arc::clone(&left), seen: Arc::clone(&seen), of };
        Arc::new(Layer::new(Arc::clone(fs), hook))
    };
    let stores = disks.stores.iter().enumerate().map(layer).collect();
    (World::draining(layer((3, &disks.below)), stores, &[2]), seen)
}

#[test]
fn a_crash_at_any_call_leaves_the_file_whole_and_a_second_run_continues() {
    let mut has_moved = false;
    for calls in 0.. {
        let disks = Disks::new();
        let file = make(&disks.before().placed, "f", &text());
        let (dying, _) = mortal(&disks, calls);
        let moved = move_file(&dying, &file);
        let world = disks.draining();
        assert_eq!(bytes_of(&world, &file).unwrap(), text(), "after {calls} calls");
        let page = world.placed.check(&world.below.root(), 0).unwrap();
        assert_eq!(page.files[0].faults, [], "after {calls} calls");
        move_file(&world, &file).unwrap();
        assert_eq!(bytes_of(&disks.after(), &file).unwrap(), text(), "after {calls} calls");
        has_moved |= moved.is_ok();
        if moved.is_ok() && disks.counts() == [1, 1, 0] {
            break;
        }
        assert!(calls < 500, "the move does not end");
    }
    assert!(has_moved);
}

#[test]
fn copies_are_stable_before_the_place_is_replaced_and_that_before_the_old_ones_go() {
    let disks = Disks::new();
    let file = make(&disks.before().placed, "f", &text());
    let (world, seen) = mortal(&disks, usize::MAX);
    move_file(&world, &file).unwrap();
    let seen = seen.lock().unwrap();
    let first = |call: (usize, Verb)| seen.iter().position(|it| *it == call).unwrap();
    let last = |call: (usize, Verb)| seen.iter().rposition(|it| *it == call).unwrap();
    let replaced = first((3, Verb::Setxattr));
    for store in [0, 1] {
        assert!(last((store, Verb::Write)) < last((store, Verb::Commit)));
        assert!(last((store, Verb::Commit)) < replaced);
    }
    let stable = last((3, Verb::Commit));
    assert!(replaced < stable);
    assert!((0..3).all(|store| stable < first((store, Verb::Remove))));
}

#[test]
fn data_that_is_not_stable_is_committed_before_it_is_copied() {
    let disks = Disks::new();
    let file = make(&disks.before().placed, "f", &text());
    let (world, seen) = mortal(&disks, usize::MAX);
    move_file(&world, &file).unwrap();
    let seen = seen.lock().unwrap();
    let first = |call: (usize, Verb)| seen.iter().position(|it| *it == call);
    for store in 0..3 {
        let committed = first((store, Verb::Commit));
        assert!(committed.is_some() && committed < first((store, Verb::Read)), "{store}");
    }
}

#[test]
fn a_part_that_was_lost_is_told_and_not_made_to_look_whole_in_silence() {
    let disks = Disks::new();
    let file = make(&disks.before().placed, "f", &text());
    let world = disks.draining();
    let page = world.placed.check(&world.below.root(), 0).unwrap();
    let (fs, data_file) = (&disks.stores[1], page.files[0].stored_name.clone().unwrap());
    fs.remove(&root(), &fs.root(), name(&data_file)).unwrap();
    let page = world.placed.check(&world.below.root(), 0).unwrap();
    assert!(matches!(page.files[0].faults[0].1, StripeFault::Missing(_)));
    let moved = move_file(&world, &file);
    assert!(matches!(moved, Ok(MovedFile::Moved { has_gaps: true, .. })), "{moved:?}");
}

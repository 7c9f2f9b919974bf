//! Files that stay on the metadata server until they grow.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{
    Cred, Data, Disk, Distribution, Fs, Gid, Handle, Placement, ReadInto, Result, SetAttr, SetTime,
    Status, Time, Uid,
};
use common::{After, SMALL_BELOW, UNIT, World, make, memory, name, root};

/// A file system of the metadata server and two of data servers, and the kind of the placement.
struct Disks {
    below: Arc<dyn Fs>,
    stores: Vec<Arc<dyn Fs>>,
    is_mirrored: bool,
}

impl Disks {
    fn new(is_mirrored: bool) -> Self {
        Self { below: memory(), stores: (0..2).map(|_| memory()).collect(), is_mirrored }
    }

    /// Disks of both kinds of placements.
    fn of_both_kinds() -> [Self; 2] {
        [Self::new(false), Self::new(true)]
    }

    /// A server that has just started.
    fn world(&self) -> World {
        self.over(Arc::clone(&self.below), self.stores.clone())
    }

    /// A server that dies after a number of calls to the file systems.
    fn mortal(&self, calls: usize) -> World {
        let left = Arc::new(AtomicUsize::new(calls));
        let layer = |fs: &Arc<dyn Fs>| -> Arc<dyn Fs> {
            Arc::new(Layer::new(Arc::clone(fs), Dying(Arc::clone(&left))))
        };
        self.over(layer(&self.below), self.stores.iter().map(layer).collect())
    }

    fn over(&self, below: Arc<dyn Fs>, stores: Vec<Arc<dyn Fs>>) -> World {
        let make = if self.is_mirrored { World::mirrored } else { World::over };
        make(below, stores).with_threshold()
    }
}

/// Lets a number of calls pass; the others fail.
struct Dying(Arc<AtomicUsize>);

impl Hook for Dying {
    fn around<T>(&self, _: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let left = |left: usize| left.checked_sub(1);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => work(),
            Err(_) => Err(Status::Io),
        }
    }
}

/// Lets no write pass, as a disk that is full.
struct Full;

impl Hook for Full {
    fn around<T>(&self, verb: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if verb == Verb::Write { Err(Status::NoSpc) } else { work() }
    }
}

fn text(length: u64) -> Vec<u8> {
    (0..length).map(|at| (at / 7 + at / UNIT * 31) as u8 | 1).collect()
}

fn bytes_in(fs: &dyn Fs, file: &Handle) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = fs.read(&root(), file, 0, 1 << 24, &mut ReadInto::new(&mut bytes)).unwrap();
    assert!(matches!(read.data, Data::Appended(_)) && read.eof);
    bytes
}

fn is_placed(world: &World, file: &Handle) -> bool {
    let page = world.placed.check(&world.below.root(), 0).unwrap();
    page.files.iter().any(|found| found.handle == *file)
}

/// The numbers of data files on the data servers.
fn counts(world: &World) -> [usize; 2] {
    ["s0", "s1"].map(|server| world.placed.stored(server, 0).unwrap().names.len())
}

fn resized(size: u64) -> SetAttr<Disk> {
    SetAttr { size: Some(size), ..SetAttr::default() }
}

/// Checks that a file is on the data servers with these bytes, and that none are left here.
fn check_placed(world: &World, file: &Handle, expected: &[u8]) {
    assert!(is_placed(world, file));
    assert!(bytes_in(&world.placed, file) == expected);
    assert!(bytes_in(&*world.below, file).iter().all(|byte| *byte == 0));
    assert_eq!(world.placed.getattr(file).unwrap().size, expected.len() as u64);
}

#[test]
fn a_file_below_the_threshold_has_nothing_on_data_servers() {
    for disks in Disks::of_both_kinds() {
        let (world, data) = (disks.world(), text(SMALL_BELOW - 1));
        let file = make(&world.placed, "f", &data);
        world.placed.setattr(&root(), &file, &resized(SMALL_BELOW - 9), None).unwrap();
        world.placed.commit(&file).unwrap();
        assert!(!is_placed(&world, &file));
        assert!(bytes_in(&*world.below, &file) == data[..data.len() - 8]);
        assert_eq!(world.placed.distribution(&file, false), Ok(None), "reading takes no layout");
        assert_eq!(counts(&world), [0, 0]);
        world.placed.remove(&root(), &world.placed.root(), name("f")).unwrap();
    }
}

#[test]
fn a_write_that_makes_a_file_as_long_as_the_threshold_places_it() {
    for disks in Disks::of_both_kinds() {
        let (world, mut data) = (disks.world(), text(2 * UNIT));
        let file = make(&world.placed, "f", &data);
        world.placed.write(&root(), &file, SMALL_BELOW - 3, b"end").unwrap();
        data.resize(SMALL_BELOW as usize - 3, 0);
        data.extend(b"end");
        check_placed(&world, &file, &data);
        check_placed(&disks.world(), &file, &data);
    }
}

#[test]
fn a_larger_size_places_a_file_and_a_smaller_one_leaves_it_placed() {
    for disks in Disks::of_both_kinds() {
        let (world, mut data) = (disks.world(), text(100));
        let file = make(&world.placed, "f", &data);
        world.placed.setattr(&root(), &file, &resized(SMALL_BELOW), None).unwrap();
        data.resize(SMALL_BELOW as usize, 0);
        check_placed(&world, &file, &data);
        world.placed.setattr(&root(), &file, &resized(50), None).unwrap();
        check_placed(&world, &file, &data[..50]);
    }
}

#[test]
fn a_guard_holds_for_a_size_that_places_its_file() {
    for disks in Disks::of_both_kinds() {
        let (world, mut data) = (disks.world(), text(100));
        let file = make(&world.placed, "f", &data);
        let right = world.placed.getattr(&file).unwrap().ctime;
        let wrong = Time { seconds: right.seconds - 1, ..right };
        let refused = world.placed.setattr(&root(), &file, &resized(SMALL_BELOW), Some(wrong));
        assert_eq!(refused.err(), Some(Status::NotSync));
        assert!(!is_placed(&world, &file), "the call was refused");
        world.placed.setattr(&root(), &file, &resized(SMALL_BELOW), Some(right)).unwrap();
        data.resize(SMALL_BELOW as usize, 0);
        check_placed(&world, &file, &data);
        let refused = world.placed.setattr(&root(), &file, &resized(1 << 20), Some(right));
        assert_eq!(refused.err(), Some(Status::NotSync), "the file has changed since");
    }
}

#[test]
fn an_allocation_and_a_copy_beyond_the_threshold_place_their_file() {
    let disks = Disks::new(false);
    let world = disks.world();
    let [source, target, other] =
        ["s", "t", "o"].map(|of| make(&world.placed, of, &text(SMALL_BELOW / 2 + 1)));
    let allocated = world.placed.allocate(&root(), &other, SMALL_BELOW, 1);
    assert_eq!(allocated.err(), Some(Status::NotSupp), "clients write instead");
    let half = SMALL_BELOW / 2;
    let short = world.placed.copy(&root(), (&source, 0), (&target, 0), half);
    assert!(short.is_ok(), "{short:?}");
    assert!(!is_placed(&world, &target) && is_placed(&world, &other));
    let long = world.placed.copy(&root(), (&source, 0), (&target, half), half);
    assert_eq!(long.err(), Some(Status::NotSupp));
    check_placed(&world, &target, &text(half + 1));
    assert!(!is_placed(&world, &source));
}

#[test]
fn a_layout_for_writing_places_a_file_with_and_without_bytes() {
    for disks in Disks::of_both_kinds() {
        for length in [0, 100, 2 * UNIT + 1] {
            let world = disks.world();
            let file = make(&world.placed, &length.to_string(), &text(length));
            let before = world.placed.getattr(&file).unwrap();
            assert!(world.placed.distribution(&file, true).unwrap().is_some(), "{length}");
            check_placed(&world, &file, &text(length));
            assert!(world.placed.distribution(&file, false).unwrap().is_some());
            assert_eq!(world.placed.getattr(&file).unwrap().mtime, before.mtime);
            let found = world.placed.check(&world.below.root(), 0).unwrap();
            assert!(found.files.iter().all(|file| file.faults.is_empty()), "{found:?}");
            let used = world.placed.getattr(&file).unwrap().used;
            assert!(used >= length, "{used} of {length}");
        }
    }
}

#[test]
fn a_layout_for_writing_leaves_a_file_that_may_have_lost_its_place() {
    for disks in Disks::of_both_kinds() {
        let world = disks.world();
        let [hole, zeros] = ["h", "z"].map(|of| make(&world.placed, of, b""));
        world.placed.setattr(&root(), &hole, &resized(100), None).unwrap();
        world.placed.write(&root(), &zeros, 0, &[0; 100]).unwrap();
        for file in [hole, zeros] {
            assert_eq!(world.placed.distribution(&file, true), Ok(None));
            assert!(!is_placed(&world, &file));
            world.placed.write(&root(), &file, 50, b"own").unwrap();
            assert!(world.placed.distribution(&file, true).unwrap().is_some());
        }
    }
}

#[test]
fn a_time_that_is_set_while_a_file_is_placed_stays() {
    for verb in [Verb::Commit, Verb::Deallocate] {
        let disks = Disks::new(false);
        let (below, next) = After::over(&disks.below, verb);
        let world = disks.over(below, disks.stores.clone());
        let file = make(&world.placed, "f", &text(100));
        let (disk, time) = (Arc::clone(&disks.below), Time { seconds: 1_000, nanoseconds: 5 });
        let set = SetAttr { mtime: Some(SetTime::To(time)), ..SetAttr::default() };
        *next.lock().unwrap() = Some(Box::new(move || {
            disk.setattr(&root(), &file, &set, None).unwrap();
        }));
        assert!(world.placed.distribution(&file, true).unwrap().is_some());
        assert_eq!(world.placed.getattr(&file).unwrap().mtime, time, "{verb:?}");
        check_placed(&world, &file, &text(100));
    }
}

#[test]
fn a_file_that_was_long_before_stays() {
    let disks = Disks::new(false);
    let file = make(&disks.world().placed, "f", b"");
    disks.below.write(&root(), &file, 0, &text(SMALL_BELOW)).unwrap();
    let world = disks.world();
    assert_eq!(world.placed.distribution(&file, true), Ok(None));
    world.placed.write(&root(), &file, SMALL_BELOW, b"more").unwrap();
    assert!(!is_placed(&world, &file));
    assert_eq!(counts(&world), [0, 0]);
}

#[test]
fn a_caller_without_a_right_does_not_place_a_file() {
    let disks = Disks::new(false);
    let (world, other) = (disks.world(), Cred::new(Uid::new(1000), Gid::new(1000)));
    let file = make(&world.placed, "f", b"text");
    let refused = world.placed.write(&other, &file, SMALL_BELOW, b"x");
    assert_eq!(refused.err(), Some(Status::Acces));
    let refused = world.placed.setattr(&other, &file, &resized(SMALL_BELOW), None);
    assert!(refused.is_err());
    assert!(!is_placed(&world, &file));
}

#[test]
fn a_file_that_has_lost_its_name_stays() {
    let disks = Disks::new(false);
    let world = disks.world();
    let file = make(&world.placed, "f", b"text");
    world.placed.link(&root(), &file, &world.placed.root(), name("g")).unwrap();
    for of in ["f", "g"] {
        world.placed.remove(&root(), &world.placed.root(), name(of)).unwrap();
    }
    // The file in memory is gone with its last name; a disk keeps it while it is open.
    let written = world.placed.write_opened(&root(), &file, SMALL_BELOW, b"x");
    assert!(matches!(written, Ok(1) | Err(Status::Stale)), "{written:?}");
    assert_eq!(counts(&world), [0, 0]);
}

#[test]
fn a_crash_at_any_call_leaves_a_file_that_is_placed_whole() {
    for disks in Disks::of_both_kinds() {
        let mut outcomes = [0, 0];
        for calls in 0.. {
            let file = make(&disks.world().placed, &calls.to_string(), &text(2 * UNIT + 1));
            let dying = disks.mortal(calls);
            let placed = dying.placed.distribution(&file, true).is_ok();
            let world = disks.world();
            let is_there = is_placed(&world, &file);
            assert!(bytes_in(&world.placed, &file) == text(2 * UNIT + 1), "after {calls} calls");
            outcomes[usize::from(is_there)] += 1;
            // The server goes on.
            world.placed.write(&root(), &file, SMALL_BELOW, b"end").unwrap();
            assert_eq!(&bytes_in(&world.placed, &file)[SMALL_BELOW as usize..], b"end");
            assert!(is_placed(&world, &file));
            if placed {
                break;
            }
            assert!(calls < 500, "the placing does not end");
        }
        assert!(outcomes.iter().all(|count| *count > 1), "{outcomes:?}");
    }
}

#[test]
fn a_data_server_that_fails_leaves_the_file_here() {
    let disks = Disks::new(false);
    let world = disks.world();
    let file = make(&world.placed, "f", &text(2 * UNIT));
    world.stores[1].is_down.store(true, Ordering::Relaxed);
    let refused = world.placed.write(&root(), &file, SMALL_BELOW, b"x");
    assert_eq!(refused.err(), Some(Status::Delay));
    assert!(bytes_in(&world.placed, &file) == text(2 * UNIT));
    world.placed.write(&root(), &file, 0, b"still small").unwrap();
    assert!(!is_placed(&world, &file));
    world.stores[1].is_down.store(false, Ordering::Relaxed);
    assert_eq!(counts(&world), [0, 0], "the copy is removed");
}

#[test]
fn a_file_is_placed_without_a_mirror_whose_writes_fail() {
    for length in [1, 2 * UNIT] {
        let disks = Disks::new(true);
        let full: Arc<dyn Fs> = Arc::new(Layer::new(Arc::clone(&disks.stores[1]), Full));
        let stores = vec![Arc::clone(&disks.stores[0]), full];
        let world = disks.over(Arc::clone(&disks.below), stores);
        let [grown, laid_out] = ["g", "l"].map(|of| make(&world.placed, of, &text(length)));
        world.placed.setattr(&root(), &grown, &resized(SMALL_BELOW), None).unwrap();
        let mut data = text(length);
        data.resize(SMALL_BELOW as usize, 0);
        check_placed(&world, &grown, &data);
        let layout = world.placed.distribution(&laid_out, true).unwrap();
        let Some(Distribution::Mirrors(mirrors)) = layout else { panic!("{layout:?}") };
        assert_eq!(mirrors.len(), 1, "clients write to the good mirror only");
        check_placed(&disks.world(), &laid_out, &text(length));
        let broken = world.placed.servers().iter().map(|it| it.broken_files).collect::<Vec<_>>();
        assert_eq!(broken, [0, 2]);
    }
}

#[test]
fn a_file_stays_here_if_the_writes_of_all_mirrors_fail() {
    let disks = Disks::new(true);
    let full = |fs: &Arc<dyn Fs>| -> Arc<dyn Fs> { Arc::new(Layer::new(Arc::clone(fs), Full)) };
    let stores = disks.stores.iter().map(full).collect();
    let world = disks.over(Arc::clone(&disks.below), stores);
    let file = make(&world.placed, "f", &text(UNIT));
    let refused = world.placed.write(&root(), &file, SMALL_BELOW, b"x");
    assert_eq!(refused.err(), Some(Status::NoSpc));
    assert!(!is_placed(&world, &file) && bytes_in(&world.placed, &file) == text(UNIT));
    assert_eq!(counts(&world), [0, 0], "the copy is removed");
}

#[test]
fn writers_in_parallel_lose_no_bytes_while_their_file_is_placed() {
    /// Bytes of one write.
    const PART: usize = 4096;
    for disks in Disks::of_both_kinds() {
        let (world, data) = (disks.world(), text(2 * SMALL_BELOW));
        let parts: Vec<(usize, &[u8])> = data.chunks(PART).enumerate().collect();
        for round in 0..8 {
            let file = make(&world.placed, &round.to_string(), b"");
            let write = |parts: &[(usize, &[u8])]| {
                for (at, part) in parts {
                    let offset = (at * PART) as u64;
                    world.placed.write(&root(), &file, offset, part).unwrap();
                }
            };
            std::thread::scope(|scope| {
                for writer in 0..3 {
                    let own = parts.iter().skip(writer).step_by(3).copied().collect::<Vec<_>>();
                    scope.spawn(move || write(&own));
                }
                scope.spawn(|| {
                    for _ in 0..50 {
                        let bytes = bytes_in(&world.placed, &file);
                        let wrong = bytes.iter().zip(&data).find(|(a, b)| **a != 0 && a != b);
                        assert_eq!(wrong, None);
                    }
                });
            });
            check_placed(&world, &file, &data);
        }
    }
}

//! The comparison of mirrors finds the ranges in which they differ.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use comity_placement::PlacementSettings;
use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{
    ComparedRange, Create, DifferingRange, Fs, Handle, Placement, Result, SetAttr, Status,
};
use common::{World, memory, name, root};

/// The blocks by which mirrors are compared.
const BLOCK: u64 = 4096;

const MIB: u64 = 1 << 20;

/// A file with three mirrors.
fn world(stores: Vec<Arc<dyn Fs>>) -> (World, Handle) {
    let mut world = World::mirrored(memory(), stores);
    let settings = world.placed.settings().clone();
    world.placed = world.placed.with(PlacementSettings { mirrors: Some(3), ..settings });
    let how = Create::Unchecked(SetAttr::default());
    let placed = &world.placed;
    let made = placed.create(&root(), &placed.root(), name("f"), &how).unwrap().value.handle;
    (world, made)
}

fn three() -> Vec<Arc<dyn Fs>> {
    (0..3).map(|_| memory()).collect()
}

/// Changes the data file directly on a data server, without the metadata server.
fn harm(world: &World, at: usize, offset: u64, data: &[u8]) {
    let called = world.placed.check(&world.placed.root(), 0).unwrap().files[0].stored_name.clone();
    let fs = &world.stores[at].fs;
    let file = fs.lookup(&root(), &fs.root(), name(&called.unwrap())).unwrap().node.handle;
    fs.write(&root(), &file, offset, data).unwrap();
}

fn compare(world: &World, file: &Handle) -> ComparedRange {
    world.placed.compare(file, (0, u64::MAX)).unwrap().unwrap()
}

/// A range of which one data server has other bytes than both others.
fn differs(offset: u64, length: u64, odd: usize, found: &DifferingRange) {
    assert_eq!((found.offset, found.length), (offset, length));
    let mut groups: Vec<Vec<Box<str>>> = found.groups.clone();
    groups.iter_mut().for_each(|group| group.sort());
    groups.sort_by_key(Vec::len);
    let others = (0..3).filter(|at| *at != odd).map(|at| format!("s{at}").into()).collect();
    assert_eq!(groups, [vec![format!("s{odd}").into()], others]);
}

#[test]
fn mirrors_with_the_same_bytes_have_no_ranges() {
    let (world, file) = world(three());
    assert_eq!(compare(&world, &file).bytes, 0);
    world.placed.write(&root(), &file, 5, &vec![7; 3 * MIB as usize]).unwrap();
    let found = compare(&world, &file);
    assert_eq!((found.differing, found.unread, found.next), (vec![], vec![], None));
    assert_eq!(found.bytes, 3 * MIB + 5);
}

#[test]
fn ranges_that_differ_are_found_with_their_data_servers() {
    let (world, file) = world(three());
    world.placed.write(&root(), &file, 0, &vec![7; 2 * MIB as usize + 10]).unwrap();
    harm(&world, 1, 100, b"harm");
    harm(&world, 2, 3 * BLOCK + 1, &vec![8; 2 * BLOCK as usize]);
    harm(&world, 0, 2 * MIB + 9, b"x");
    let found = compare(&world, &file).differing;
    assert_eq!(found.len(), 3);
    differs(100, 4, 1, &found[0]);
    differs(3 * BLOCK + 1, 2 * BLOCK, 2, &found[1]);
    differs(2 * MIB + 9, 1, 0, &found[2]);
    let part = world.placed.compare(&file, (104, MIB)).unwrap().unwrap();
    assert_eq!((part.differing.len(), part.bytes), (1, MIB), "a range is compared by itself");
}

#[test]
fn a_comparison_of_many_ranges_stops_and_can_go_on() {
    let (world, file) = world(three());
    world.placed.write(&root(), &file, 0, &vec![7; 3 * MIB as usize]).unwrap();
    let blocks = (0..3 * MIB / BLOCK).step_by(2);
    blocks.for_each(|block| harm(&world, 1, block * BLOCK, b"x"));
    let (mut next, mut count) = (Some(0), 0);
    while let Some(at) = next {
        let page = world.placed.compare(&file, (at, u64::MAX)).unwrap().unwrap();
        assert!(page.differing.len() <= 320);
        (next, count) = (page.next, count + page.differing.len() as u64);
    }
    assert_eq!(count, 3 * MIB / BLOCK / 2);
}

#[test]
fn a_mirror_that_does_not_answer_is_named_and_the_others_are_compared() {
    let (world, file) = world(three());
    world.placed.write(&root(), &file, 0, b"whole").unwrap();
    harm(&world, 1, 0, b"W");
    world.stores[2].is_down.store(true, Ordering::Relaxed);
    let found = compare(&world, &file);
    assert_eq!(found.unread, [("s2".into(), Status::Delay)]);
    assert_eq!((found.differing.len(), found.differing[0].groups.len()), (1, 2));
}

#[test]
fn a_file_without_two_good_mirrors_is_not_compared() {
    let world = World::mirrored(memory(), vec![memory(), memory()]);
    let how = Create::Unchecked(SetAttr::default());
    let made = world.placed.create(&root(), &world.placed.root(), name("f"), &how).unwrap();
    let file = made.value.handle;
    world.placed.write(&root(), &file, 0, b"old").unwrap();
    world.stores[1].is_down.store(true, Ordering::Relaxed);
    world.placed.write(&root(), &file, 0, b"new").unwrap();
    world.stores[1].is_down.store(false, Ordering::Relaxed);
    assert_eq!(world.placed.compare(&file, (0, u64::MAX)), Ok(None));
    let striped = World::in_memory(2);
    let made = striped.placed.create(&root(), &striped.placed.root(), name("f"), &how).unwrap();
    assert_eq!(striped.placed.compare(&made.value.handle, (0, u64::MAX)), Ok(None));
}

/// Delays each write, so that mirrors differ for that time.
struct Slow(Arc<AtomicBool>);

impl Hook for Slow {
    fn around<T>(&self, verb: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if verb == Verb::Write && self.0.load(Ordering::Relaxed) {
            thread::sleep(std::time::Duration::from_millis(20));
        }
        work()
    }
}

#[test]
fn a_write_through_the_server_that_is_under_way_is_no_difference() {
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = |_| -> Arc<dyn Fs> { Arc::new(Layer::new(memory(), Slow(Arc::clone(&is_slow)))) };
    let (world, file) = world((0..3).map(slow).collect());
    world.placed.write(&root(), &file, 0, b"begin").unwrap();
    is_slow.store(true, Ordering::Relaxed);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..20_u8 {
                world.placed.write(&root(), &file, 0, &[number; 5]).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            assert_eq!(compare(&world, &file).differing, []);
        }
    });
}

//! The size of a file that clients have written by layouts without saying so.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{
    Attr, Create, Disk, Fs, Handle, Placement, Result, SetAttr, SetTime, Status, Time,
};
use common::{UNIT, World, memory, name, root};

/// Makes a file of this size.
fn make(world: &World, size: u64) -> Handle {
    let how = Create::Unchecked(SetAttr::default());
    let made = world.placed.create(&root(), &world.placed.root(), name("f"), &how).unwrap();
    let file = made.value.handle;
    if size > 0 {
        world.placed.write(&root(), &file, 0, &vec![1; size as usize]).unwrap();
    }
    file
}

/// Writes as a client with a layout does: only the data server of this number knows of it.
fn write_by_layout(world: &World, at: usize, offset: u64, data: &[u8]) {
    let fs = &world.stores[at].fs;
    let page = world.placed.check(&world.placed.root(), 0).unwrap();
    let stored = page.files[0].stored_name.clone().unwrap();
    let how = Create::Unchecked(SetAttr::default());
    let file = fs.create(&root(), &fs.root(), name(&stored), &how).unwrap().value.handle;
    fs.write(&root(), &file, offset, data).unwrap();
}

fn attr(world: &World, file: &Handle) -> Attr<Disk> {
    world.placed.getattr(file).unwrap()
}

fn cut(world: &World, file: &Handle, size: u64) {
    let set = SetAttr { size: Some(size), ..SetAttr::default() };
    world.placed.setattr(&root(), file, &set, None).unwrap();
}

/// Waits until the clock of file systems shows another moment.
fn pause() {
    thread::sleep(Duration::from_millis(20));
}

#[test]
fn a_file_is_extended_to_the_last_byte_of_any_data_server() {
    for (at, offset, end) in [(0, 2 * UNIT, 2 * UNIT + 4), (1, UNIT, UNIT + 4), (1, 0, 10)] {
        let world = World::in_memory(2);
        let file = make(&world, 10);
        write_by_layout(&world, at, offset, b"more");
        let before = attr(&world, &file);
        pause();
        world.placed.learn_size(&file).unwrap();
        let after = attr(&world, &file);
        assert_eq!(after.size, end);
        assert!(after.mtime > before.mtime && after.change != before.change, "{offset}");
    }
}

#[test]
fn a_file_never_shrinks_and_nothing_changes_if_there_is_no_news() {
    let world = World::in_memory(2);
    let file = make(&world, 3 * UNIT);
    cut(&world, &file, 9 * UNIT);
    let before = attr(&world, &file);
    pause();
    world.placed.learn_size(&file).unwrap();
    assert_eq!(attr(&world, &file), before);
}

#[test]
fn bytes_that_were_replaced_in_place_get_a_new_time_once() {
    let world = World::in_memory(2);
    let file = make(&world, 3 * UNIT);
    let old = Time { seconds: 1000, nanoseconds: 0 };
    let set = SetAttr { mtime: Some(SetTime::To(old)), ..SetAttr::default() };
    world.placed.setattr(&root(), &file, &set, None).unwrap();
    world.placed.learn_size(&file).unwrap();
    assert_eq!(attr(&world, &file).mtime, old, "nothing was written since");
    pause();
    write_by_layout(&world, 1, UNIT, b"new");
    pause();
    world.placed.learn_size(&file).unwrap();
    let known = attr(&world, &file);
    assert!(known.mtime > old && known.size == 3 * UNIT);
    pause();
    world.placed.learn_size(&file).unwrap();
    assert_eq!(attr(&world, &file), known);
}

#[test]
fn a_data_server_that_is_down_leaves_the_size_for_later() {
    let world = World::in_memory(2);
    let file = make(&world, 10);
    write_by_layout(&world, 0, 2 * UNIT, b"more");
    world.stores[1].is_down.store(true, Ordering::Relaxed);
    assert_eq!(world.placed.learn_size(&file), Err(Status::Delay));
    assert_eq!(attr(&world, &file).size, 10, "the file can be used");
    world.stores[1].is_down.store(false, Ordering::Relaxed);
    world.placed.learn_size(&file).unwrap();
    assert_eq!(attr(&world, &file).size, 2 * UNIT + 4);
}

#[test]
fn a_file_without_a_place_and_a_removed_one_have_no_size_to_learn() {
    let world = World::in_memory(2);
    let how = Create::Unchecked(SetAttr::default());
    let own = world.below.create(&root(), &world.below.root(), name("own"), &how).unwrap();
    assert_eq!(world.placed.learn_size(&own.value.handle), Ok(()));
    let file = make(&world, 10);
    world.placed.remove(&root(), &world.placed.root(), name("f")).unwrap();
    assert!(matches!(world.placed.learn_size(&file), Err(Status::Stale)));
}

/// A data server that halts at the next call of one verb when it is armed: a question is answered
/// before the halt, and a change is made after it.
#[derive(Clone)]
struct Halt {
    verb: Verb,
    is_armed: Arc<AtomicBool>,
    reached: Sender<()>,
    released: Arc<Mutex<Receiver<()>>>,
}

impl Hook for Halt {
    fn around<T>(&self, verb: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if verb != self.verb || !self.is_armed.swap(false, Ordering::SeqCst) {
            return work();
        }
        let halt = || {
            self.reached.send(()).unwrap();
            self.released.lock().unwrap().recv().unwrap();
        };
        if verb != Verb::Lookup {
            halt();
            return work();
        }
        let answer = work();
        halt();
        answer
    }
}

/// A world whose only data server halts.
struct Halting {
    world: World,
    is_armed: Arc<AtomicBool>,
    reached: Receiver<()>,
    release: Sender<()>,
}

impl Halting {
    fn at(verb: Verb) -> Self {
        let ((reached, heard), (release, released)) = (channel(), channel());
        let is_armed = Arc::<AtomicBool>::default();
        let released = Arc::new(Mutex::new(released));
        let hook = Halt { verb, is_armed: Arc::clone(&is_armed), reached, released };
        let world = World::over(memory(), vec![Arc::new(Layer::new(memory(), hook))]);
        Self { world, is_armed, reached: heard, release }
    }

    /// Begins to do something, and returns when the data server halts.
    fn begin<'s, T: Send + 's>(
        &self,
        scope: &'s Scope<'s, '_>,
        what: impl FnOnce() -> T + Send + 's,
    ) -> ScopedJoinHandle<'s, T> {
        self.is_armed.store(true, Ordering::SeqCst);
        let begun = scope.spawn(what);
        self.reached.recv_timeout(Duration::from_secs(20)).unwrap();
        begun
    }
}

#[test]
fn a_truncation_while_data_servers_are_asked_is_not_undone() {
    let halting = Halting::at(Verb::Lookup);
    let world = &halting.world;
    let file = make(world, 3 * UNIT);
    write_by_layout(world, 0, 3 * UNIT, b"more");
    thread::scope(|scope| {
        let asking = halting.begin(scope, || world.placed.learn_size(&file));
        cut(world, &file, 5);
        halting.release.send(()).unwrap();
        assert_eq!(asking.join().unwrap(), Err(Status::Delay));
    });
    assert_eq!(attr(world, &file).size, 5);
    world.placed.learn_size(&file).unwrap();
    assert_eq!(attr(world, &file).size, 5, "its bytes on data servers are cut, too");
}

#[test]
fn a_creation_that_empties_a_file_is_not_undone_by_a_question_in_between() {
    let halting = Halting::at(Verb::Setattr);
    let world = &halting.world;
    let file = make(world, 3 * UNIT);
    let top = world.placed.root();
    let how = Create::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
    thread::scope(|scope| {
        let create = || world.placed.create(&root(), &top, name("f"), &how);
        let emptying = halting.begin(scope, create);
        let asking = scope.spawn(|| world.placed.learn_size(&file));
        thread::sleep(Duration::from_millis(100));
        halting.release.send(()).unwrap();
        assert_eq!(emptying.join().unwrap().unwrap().value.handle, file);
        asking.join().unwrap().unwrap();
    });
    assert_eq!(attr(world, &file).size, 0);
}

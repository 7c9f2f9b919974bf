//! Replies that promise stability come after the barrier: a layer records the order of events.

use comity_proto::nfs3::{
    Commit3args, Create3args, Createhow3, Diropargs3, Link3args, Mkdir3args, Mknod3args,
    Mknoddata3, PROGRAM, Rename3args, Sattr3, Setattr3args, StableHow, Symlink3args, Write3args,
    procedure,
};
use comity_vfs::Status;
use comity_vfs::layers::{Faults, Verb, When};
use comity_xdr::Opaque;

use crate::world::{Ground, World, encoded};

/// A call whose reply promises stability.
struct Promise {
    name: &'static str,
    procedure: u32,
    /// The verb of the backend that the call uses.
    verb: Verb,
    /// The number of objects that must be stable.
    objects: usize,
    /// The length in words of the body of a failure without attributes.
    absent_words: usize,
    arguments: fn(&World) -> Vec<u8>,
}

const fn promise(
    name: &'static str,
    procedure: u32,
    verb: Verb,
    (objects, absent_words): (usize, usize),
    arguments: fn(&World) -> Vec<u8>,
) -> Promise {
    Promise { name, procedure, verb, objects, absent_words, arguments }
}

/// Changes of names and attributes. They are stable before the reply unless the export is `async`.
const CHANGES: [Promise; 9] = [
    promise("SETATTR", procedure::SETATTR, Verb::Setattr, (1, 2), |world| {
        let new_attributes = Sattr3 { mode: Some(0o600), ..Sattr3::default() };
        encoded(&Setattr3args { object: Opaque(&world.handle("a")), new_attributes, guard: None })
    }),
    promise("CREATE", procedure::CREATE, Verb::Create, (2, 2), |world| {
        let how = Createhow3::Guarded(Sattr3::default());
        encoded(&Create3args { place: place(&world.root, b"new"), how })
    }),
    promise("MKDIR", procedure::MKDIR, Verb::Mkdir, (2, 2), |world| {
        let attributes = Sattr3::default();
        encoded(&Mkdir3args { place: place(&world.root, b"new"), attributes })
    }),
    promise("SYMLINK", procedure::SYMLINK, Verb::Symlink, (2, 2), |world| {
        let (attributes, target) = (Sattr3::default(), Opaque(&b"target"[..]));
        encoded(&Symlink3args { place: place(&world.root, b"new"), attributes, target })
    }),
    promise("MKNOD", procedure::MKNOD, Verb::Mknod, (2, 2), |world| {
        let what = Mknoddata3::Fifo(Sattr3::default());
        encoded(&Mknod3args { place: place(&world.root, b"new"), what })
    }),
    promise("REMOVE", procedure::REMOVE, Verb::Remove, (1, 2), |world| {
        encoded(&place(&world.root, b"a"))
    }),
    promise("RMDIR", procedure::RMDIR, Verb::Rmdir, (1, 2), |world| {
        encoded(&place(&world.root, b"d"))
    }),
    promise("RENAME", procedure::RENAME, Verb::Rename, (2, 4), |world| {
        let below = world.handle("d");
        let (from, to) = (place(&world.root, b"a"), place(&below, b"b"));
        encoded(&Rename3args { from, to })
    }),
    promise("LINK", procedure::LINK, Verb::Link, (2, 3), |world| {
        let file = world.handle("a");
        encoded(&Link3args { file: Opaque(&file), link: place(&world.root, b"b") })
    }),
];

/// Stable writes and commits. They are stable before the reply even if the export is `async`.
const DATA: [Promise; 3] = [
    promise("WRITE FILE_SYNC", procedure::WRITE, Verb::Write, (1, 2), |world| {
        write(world, StableHow::FileSync)
    }),
    promise("WRITE DATA_SYNC", procedure::WRITE, Verb::Write, (1, 2), |world| {
        write(world, StableHow::DataSync)
    }),
    promise("COMMIT", procedure::COMMIT, Verb::Getattr, (1, 2), |world| {
        encoded(&Commit3args { file: Opaque(&world.handle("a")), offset: 0, count: 0 })
    }),
];

fn place<'a>(dir: &'a [u8], name: &'a [u8]) -> Diropargs3<'a> {
    Diropargs3 { dir: Opaque(dir), name: Opaque(name) }
}

fn write(world: &World, stable: StableHow) -> Vec<u8> {
    let (file, data) = (world.handle("a"), Opaque(&b"data"[..]));
    encoded(&Write3args { file: Opaque(&file), offset: 0, count: 4, stable, data })
}

/// A server with a file `a` and a directory `d`, whatever faults its backend has.
fn furnished(ground: Ground) -> World {
    let world = World::new(ground);
    let how = Createhow3::Unchecked(Sattr3 { mode: Some(0o644), ..Sattr3::default() });
    world.call(procedure::CREATE, &Create3args { place: place(&world.root, b"a"), how });
    let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::default() };
    world.call(procedure::MKDIR, &Mkdir3args { place: place(&world.root, b"d"), attributes });
    world
}

fn record(world: &World, promise: &Promise) -> Vec<u8> {
    let record = world.record(PROGRAM, promise.procedure, &(promise.arguments)(world));
    let _ = world.recorder.take();
    record
}

fn status(body: &[u8]) -> u32 {
    u32::from_be_bytes(body[..4].try_into().unwrap())
}

fn done(world: &World, verb: Verb) -> usize {
    let events = world.recorder.take();
    assert!(events.iter().all(|event| event.failure.is_none()), "{events:?}");
    events.iter().filter(|event| event.verb == verb).count()
}

#[test]
fn a_reply_that_promises_stability_comes_after_its_barrier() {
    for promise in CHANGES.iter().chain(&DATA) {
        let world = furnished(Ground::default());
        let mut held_back = false;
        let record = record(&world, promise);
        let reply = world.send_watching(&record, &mut |world| {
            let events = world.recorder.take();
            let done = |verb| events.iter().filter(|event| event.verb == verb).count();
            assert_eq!((done(promise.verb), done(Verb::Commit)), (1, 0), "{}", promise.name);
            held_back = true;
        });
        assert!(held_back, "{} is answered at once", promise.name);
        assert_eq!(status(&reply.unwrap().body), 0, "{}", promise.name);
        assert_eq!(done(&world, Verb::Commit), promise.objects, "{}", promise.name);
    }
}

#[test]
fn a_failed_barrier_is_never_answered_ok() {
    let told = [(Status::Io, 5), (Status::NoSpc, 28), (Status::Delay, 5), (Status::Stale, 70)];
    for (failure, number) in told {
        for promise in CHANGES.iter().chain(&DATA) {
            // Making the file and the directory takes four barriers: each object and its parent.
            let faults = Faults::new(1).fail(Verb::Commit, failure, When::From(5));
            let world = furnished(Ground { faults, ..Ground::default() });
            let reply = world.send(&record(&world, promise));
            let mut expected = vec![0; 4 + 4 * promise.absent_words];
            expected[3] = number;
            assert_eq!(reply.body, expected, "{} {failure}", promise.name);
            assert!(reply.late);
        }
    }
}

#[test]
fn an_async_export_answers_changes_at_once_but_data_never() {
    let asynchronous = || {
        let mut ground = Ground::default();
        ground.rules.sync = false;
        furnished(ground)
    };
    for promise in &CHANGES {
        let world = asynchronous();
        let reply = world.send(&record(&world, promise));
        assert!(!reply.late, "{}", promise.name);
        assert_eq!(status(&reply.body), 0, "{}", promise.name);
        assert_eq!(done(&world, Verb::Commit), 0, "{}", promise.name);
    }
    for promise in &DATA {
        let world = asynchronous();
        assert!(world.send(&record(&world, promise)).late, "{}", promise.name);
        assert_eq!(done(&world, Verb::Commit), 1, "{}", promise.name);
    }
}

#[test]
fn an_unstable_write_promises_nothing() {
    let world = furnished(Ground::default());
    let record = world.record(PROGRAM, procedure::WRITE, &write(&world, StableHow::Unstable));
    let _ = world.recorder.take();
    assert!(!world.send(&record).late);
    assert_eq!(done(&world, Verb::Commit), 0);
}

#[test]
fn a_failed_change_waits_for_no_barrier() {
    let world = furnished(Ground::default());
    let record = world.record(PROGRAM, procedure::REMOVE, &encoded(&place(&world.root, b"none")));
    let reply = world.send(&record);
    assert_eq!((reply.late, status(&reply.body)), (false, 2));
}

#[test]
fn a_create_succeeds_if_the_file_is_removed_before_the_barrier() {
    let world = furnished(Ground::default());
    let below = world.handle("d");
    let how = Createhow3::Guarded(Sattr3::default());
    world.call(procedure::CREATE, &Create3args { place: place(&below, b"x"), how });
    let rmdir = |world: &World| {
        let arguments = encoded(&place(&world.root, b"d"));
        let reply = world.send(&world.record(PROGRAM, procedure::RMDIR, &arguments));
        assert_eq!(status(&reply.body), 0);
    };
    let arguments = encoded(&place(&below, b"x"));
    let record = world.record(PROGRAM, procedure::REMOVE, &arguments);
    let reply = world.send_watching(&record, &mut |world| rmdir(world)).unwrap();
    assert_eq!(status(&reply.body), 0, "the entry is gone, and that is what was asked for");
    assert_eq!(world.send(&record).body, reply.body, "as it is when it is asked again");
}

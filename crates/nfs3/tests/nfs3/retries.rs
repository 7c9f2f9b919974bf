//! A client repeats a call, or the server has been restarted.

use comity_proto::nfs3::{
    Commit3args, Commit3res, Create3args, Createhow3, Diropargs3, PROGRAM, Rename3args, Result3,
    Sattr3, StableHow, Write3args, Write3res, procedure,
};
use comity_xdr::Opaque;

use crate::world::{Ground, VERIFIER, World, decoded, encoded};

fn place<'a>(world: &'a World, name: &'a str) -> Diropargs3<'a> {
    Diropargs3 { dir: Opaque(&world.root), name: Opaque(name.as_bytes()) }
}

fn create(world: &World, name: &str) -> Vec<u8> {
    let how = Createhow3::Guarded(Sattr3::default());
    encoded(&Create3args { place: place(world, name), how })
}

fn status(body: &[u8]) -> u32 {
    u32::from_be_bytes(body[..4].try_into().unwrap())
}

/// Asserts that the same bytes get the same answer, and that the same call under a new xid is done
/// again.
fn first_answer_counts(world: &World, procedure: u32, arguments: &[u8], again: u32) {
    let record = world.record(PROGRAM, procedure, arguments);
    let first = world.send(&record).body;
    assert_eq!(status(&first), 0);
    let retried = world.send(&record);
    assert_eq!(retried.body, first, "procedure {procedure}");
    assert!(!retried.late, "the repeated reply waits for a second barrier");
    let anew = world.send(&world.record(PROGRAM, procedure, arguments)).body;
    assert_eq!(status(&anew), again, "procedure {procedure}");
}

#[test]
fn a_repeated_change_gets_its_first_answer() {
    const NOENT: u32 = 2;
    const EXIST: u32 = 17;
    let world = World::new(Ground::default());
    first_answer_counts(&world, procedure::CREATE, &create(&world, "a"), EXIST);
    let (from, to) = (place(&world, "a"), place(&world, "b"));
    first_answer_counts(&world, procedure::RENAME, &encoded(&Rename3args { from, to }), NOENT);
    first_answer_counts(&world, procedure::REMOVE, &encoded(&place(&world, "b")), NOENT);
}

fn verifiers(world: &World) -> ([u8; 8], [u8; 8]) {
    let file = world.handle("a");
    let (stable, data) = (StableHow::Unstable, Opaque(&b"x"[..]));
    let write = Write3args { file: Opaque(&file), offset: 0, count: 1, stable, data };
    let commit = Commit3args { file: Opaque(&file), offset: 0, count: 0 };
    let body = world.call(procedure::WRITE, &write);
    let Result3::Ok(written) = decoded::<Write3res>(&body) else { panic!("not written") };
    let body = world.call(procedure::COMMIT, &commit);
    let Result3::Ok(committed) = decoded::<Commit3res>(&body) else { panic!("not committed") };
    (written.verf, committed.verf)
}

#[test]
fn the_write_verifier_changes_only_with_a_restart() {
    let world = World::new(Ground::default());
    world.send(&world.record(PROGRAM, procedure::CREATE, &create(&world, "a")));
    assert_eq!(verifiers(&world), (VERIFIER, VERIFIER));
    assert_eq!(verifiers(&world), (VERIFIER, VERIFIER));
    let world = world.restarted(*b"new life");
    assert_eq!(verifiers(&world), (*b"new life", *b"new life"));
}

//! Transfers at the limits of their size, and callers that are refused.

use std::sync::Arc;

use comity_backend::{Passthrough, PassthroughOptions};
use comity_proto::nfs3::{
    Create3args, Createhow3, Diropargs3, PROGRAM, Read3args, Read3res, Result3, Sattr3, StableHow,
    Write3args, procedure,
};
use comity_xdr::Opaque;

use crate::world::{Ground, World, decoded, encoded};

fn with_a_file(ground: Ground) -> (World, Vec<u8>) {
    let world = World::new(ground);
    let place = Diropargs3 { dir: Opaque(&world.root), name: Opaque(b"a") };
    let how = Createhow3::Guarded(Sattr3 { mode: Some(0o640), ..Sattr3::default() });
    world.call(procedure::CREATE, &Create3args { place, how });
    let file = world.handle("a");
    (world, file)
}

#[test]
fn a_read_is_cut_down_to_the_limit_of_fsinfo() {
    let (world, file) = with_a_file(Ground::default());
    let megabyte = vec![7; 1 << 20];
    for offset in [0, 1 << 20] {
        let (stable, data) = (StableHow::Unstable, Opaque(&megabyte[..]));
        let arguments = Write3args { file: Opaque(&file), offset, count: 1 << 20, stable, data };
        world.call(procedure::WRITE, &arguments);
    }
    let arguments = Read3args { file: Opaque(&file), offset: 1, count: u32::MAX };
    let body = world.call(procedure::READ, &arguments);
    let Result3::Ok(read) = decoded::<Read3res<'_>>(&body) else { panic!("not read") };
    assert_eq!((read.count, read.eof, read.data.0), (1 << 20, false, &megabyte[..]));
}

#[test]
fn a_large_read_points_at_the_file_and_looks_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..300_001_u32).map(|at| (at % 251) as u8).collect();
    std::fs::write(folder.path().join("a"), &content).unwrap();
    let fs = Passthrough::open(folder.path(), PassthroughOptions::default()).unwrap();
    let ground = Ground::default();
    let world = World::serving(Arc::new(fs), Arc::default(), ground.rules, ground.memory);
    let file = world.handle("a");
    for (offset, count, by_reference) in [(1, 300_000, 1), (3, 200_001, 1), (5, 1_001, 0)] {
        let arguments = encoded(&Read3args { file: Opaque(&file), offset, count });
        let reply = world.send(&world.record(PROGRAM, procedure::READ, &arguments));
        assert_eq!(reply.by_reference, by_reference);
        let Result3::Ok(read) = decoded::<Read3res<'_>>(&reply.body) else { panic!("not read") };
        assert_eq!((read.count, read.eof), (count, offset == 1));
        let from = offset as usize;
        assert!(read.data.0 == &content[from..from + count as usize]);
    }
}

#[test]
fn a_write_above_the_limit_of_fsinfo_is_garbage_args() {
    let (world, file) = with_a_file(Ground::default());
    let data = vec![7; (1 << 20) + 1];
    let count = data.len() as u32;
    let mut arguments = encoded(&Opaque::<64>(&file));
    for word in [0, 0, count, 0, count] {
        arguments.extend(word.to_be_bytes());
    }
    arguments.extend(data);
    arguments.extend([0; 3]);
    let reply = world.send(&world.record(PROGRAM, procedure::WRITE, &arguments));
    assert_eq!(reply.verdict, (0, 4), "garbage arguments");
}

#[test]
fn a_caller_without_a_credential_can_mount_only() {
    const TOO_WEAK: u32 = 5;
    let (world, file) = with_a_file(Ground::default());
    world.act_as_nobody();
    let verdict = |procedure, arguments: &[u8]| {
        world.send(&world.record(PROGRAM, procedure, arguments)).verdict
    };
    assert_eq!(verdict(procedure::NULL, &[]), (0, 0));
    let handle = encoded(&Opaque::<64>(&file));
    assert_eq!(verdict(procedure::FSINFO, &handle), (0, 0));
    assert_eq!(verdict(procedure::GETATTR, &handle), (1, TOO_WEAK));
    assert_eq!(world.mount("/srv/pub"), world.root);
    assert_eq!(verdict(procedure::GETATTR, &handle), (1, TOO_WEAK), "after mounting too");
}

#[test]
fn there_are_22_procedures_of_one_version() {
    let (world, _) = with_a_file(Ground::default());
    let mut record = world.record(PROGRAM, 22, &[]);
    assert_eq!(world.send(&record).verdict, (0, 3), "no such procedure");
    record[19] = 2;
    assert_eq!(world.send(&record).verdict, (0, 2), "no such version");
}

#[test]
fn arguments_that_say_too_little_or_too_much_are_garbage() {
    let (world, file) = with_a_file(Ground::default());
    let handle = encoded(&Opaque::<64>(&file));
    for arguments in [&handle[..handle.len() - 4], &[&handle[..], &[0; 4]].concat()] {
        let record = world.record(PROGRAM, procedure::GETATTR, arguments);
        assert_eq!(world.send(&record).verdict, (0, 4));
    }
    let record = world.record(PROGRAM, procedure::NULL, &[0; 4]);
    assert_eq!(world.send(&record).verdict, (0, 4));
}

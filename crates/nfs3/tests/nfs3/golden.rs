//! Replies word by word, written by hand after RFC 1813; `ANY` stands for a word that the backend
//! chooses.

use comity_proto::nfs3::{
    Create3args, Createhow3, Diropargs3, Read3args, Sattr3, StableHow, Write3args, procedure,
};
use comity_xdr::Opaque;

use crate::world::{Ground, World};

const ANY: Option<u32> = None;

fn w(word: u32) -> Option<u32> {
    Some(word)
}

/// A `fattr3` of a file of the superuser: 21 words.
fn fattr3(mode: u32, size: u32) -> Vec<Option<u32>> {
    let mut words = vec![w(1), w(mode), w(1), w(0), w(0), w(0), w(size)];
    // The fields used, rdev, fsid and fileid.
    words.extend([ANY, ANY, w(0), w(0), ANY, ANY, ANY, ANY]);
    // The fields atime, mtime and ctime; the clock of the tests always has 5 ns.
    words.extend([ANY, w(5), ANY, w(5), ANY, w(5)]);
    words
}

fn matches(body: &[u8], expected: &[Option<u32>]) {
    let words: Vec<u32> =
        body.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words.len(), expected.len(), "{words:x?}");
    for (at, (found, expected)) in words.iter().zip(expected).enumerate() {
        assert!(expected.is_none_or(|word| word == *found), "word {at} of {words:x?}");
    }
}

fn with_a_file() -> (World, Vec<u8>) {
    let world = World::new(Ground::default());
    let place = Diropargs3 { dir: Opaque(&world.root), name: Opaque(b"a") };
    let how = Createhow3::Guarded(Sattr3 { mode: Some(0o640), ..Sattr3::default() });
    world.call(procedure::CREATE, &Create3args { place, how });
    let file = world.handle("a");
    let (stable, data) = (StableHow::Unstable, Opaque(&b"hello"[..]));
    let arguments = Write3args { file: Opaque(&file), offset: 0, count: 5, stable, data };
    world.call(procedure::WRITE, &arguments);
    (world, file)
}

/// RFC 1813, 3.3.1: status, attributes.
#[test]
fn getattr() {
    let (world, file) = with_a_file();
    let mut expected = vec![w(0)];
    expected.extend(fattr3(0o640, 5));
    matches(&world.call(procedure::GETATTR, &Opaque::<64>(&file)), &expected);
    matches(&world.call(procedure::GETATTR, &Opaque::<64>(&[])), &[w(10_001)]);
}

/// RFC 1813, 3.3.3: status, handle, attributes of the object, attributes of the directory.
#[test]
fn lookup() {
    let (world, file) = with_a_file();
    let arguments = Diropargs3 { dir: Opaque(&world.root), name: Opaque(b"a") };
    let body = world.call(procedure::LOOKUP, &arguments);
    let handle_words = file.len().div_ceil(4);
    let mut expected = vec![w(0), w(file.len() as u32)];
    expected.extend(vec![ANY; handle_words]);
    expected.push(w(1));
    expected.extend(fattr3(0o640, 5));
    expected.extend([w(1), w(2), w(0o777)]);
    expected.extend(vec![ANY; 19]);
    matches(&body, &expected);
    assert_eq!(body[8..8 + file.len()], file);
}

/// RFC 1813, 3.3.6: status, attributes, count, eof, data with its own length and padding.
#[test]
fn read() {
    let (world, file) = with_a_file();
    let arguments = Read3args { file: Opaque(&file), offset: 0, count: 5 };
    let mut expected = vec![w(0), w(1)];
    expected.extend(fattr3(0o640, 5));
    expected.extend([w(5), w(1), w(5), w(0x6865_6c6c), w(0x6f00_0000)]);
    matches(&world.call(procedure::READ, &arguments), &expected);
}

/// RFC 1813, 3.3.7: status, size and times before, attributes after, count, stability, verifier.
#[test]
fn write() {
    let (world, file) = with_a_file();
    let (stable, data) = (StableHow::FileSync, Opaque(&b"!"[..]));
    let arguments = Write3args { file: Opaque(&file), offset: 5, count: 1, stable, data };
    let mut expected = vec![w(0), w(1), w(0), w(5), ANY, w(5), ANY, w(5), w(1)];
    expected.extend(fattr3(0o640, 6));
    expected.extend([w(1), w(2), w(0x7665_7269), w(0x6669_6572)]);
    matches(&world.call(procedure::WRITE, &arguments), &expected);
}

/// RFC 1813, 3.3.12: status, attributes of the directory before and after; of a failure only after.
#[test]
fn remove() {
    let (world, _) = with_a_file();
    let arguments = Diropargs3 { dir: Opaque(&world.root), name: Opaque(b"a") };
    let directory = [vec![w(1), w(2), w(0o777)], vec![ANY; 19]].concat();
    let mut expected = vec![w(0), w(1), ANY, ANY, ANY, w(5), ANY, w(5)];
    expected.extend(&directory);
    matches(&world.call(procedure::REMOVE, &arguments), &expected);
    let expected = [vec![w(2), w(0)], directory].concat();
    matches(&world.call(procedure::REMOVE, &arguments), &expected);
}

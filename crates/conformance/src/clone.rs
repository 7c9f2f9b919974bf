use comity_vfs::{Handle, Result, Status};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{ALICE, Fixture, alice, ids, mode};

super::topic! { "clone"
    Needs::CLONE => a_clone_has_the_same_bytes, a_clone_keeps_its_bytes_when_its_source_changes,
        a_clone_extends_its_target, a_clone_within_one_file, a_clone_ends_where_its_source_does,
        a_clone_that_fits_no_blocks_is_inval, a_clone_of_more_than_there_is_is_inval,
        a_clone_over_itself_is_inval, a_clone_of_an_empty_file_is_empty,
        directories_cannot_be_cloned;
    Needs::CLONE.and(Needs::IDENTITIES) => a_clone_asks_for_both_rights;
}

/// A multiple of every file system's block size.
const GRAIN: u64 = 1 << 16;

/// A file of whole grains, each filled with another byte.
fn grains(f: &Fixture<'_>, name: &str, bytes: &[u8]) -> Result<Handle> {
    let data: Vec<u8> = bytes.iter().flat_map(|byte| [*byte; GRAIN as usize]).collect();
    f.filled(name, &data)
}

fn clone(
    f: &Fixture<'_>,
    source: (&Handle, u64),
    target: (&Handle, u64),
    length: u64,
) -> Result<()> {
    f.fs.clone_range(&f.owner, source, target, length).map(drop)
}

/// Returns whether a file consists of grains filled with these bytes.
fn holds(f: &Fixture<'_>, file: &Handle, bytes: &[u8]) -> Check {
    let mut data = Vec::new();
    while data.len() < (bytes.len() + 1) * GRAIN as usize {
        let (piece, eof) = f.read(file, data.len() as u64, GRAIN as u32)?;
        data.extend(piece);
        if eof {
            break;
        }
    }
    same(data.len() as u64, bytes.len() as u64 * GRAIN)?;
    let grains = data.chunks(GRAIN as usize).zip(bytes);
    let right = grains.into_iter().all(|(grain, byte)| grain.iter().all(|one| one == byte));
    ensure(right, "each grain has its byte")
}

fn a_clone_has_the_same_bytes(f: &Fixture<'_>) -> Check {
    let (source, target) = (grains(f, "a", b"abcd")?, grains(f, "b", b"wxyz")?);
    clone(f, (&source, GRAIN), (&target, 0), 2 * GRAIN)?;
    holds(f, &target, b"bcyz")?;
    holds(f, &source, b"abcd")
}

fn a_clone_keeps_its_bytes_when_its_source_changes(f: &Fixture<'_>) -> Check {
    let (source, target) = (grains(f, "a", b"abcd")?, f.file("b")?);
    clone(f, (&source, 0), (&target, 0), 4 * GRAIN)?;
    f.write(&source, GRAIN, &[b'!'; GRAIN as usize])?;
    f.write(&target, 2 * GRAIN, &[b'?'; GRAIN as usize])?;
    holds(f, &source, b"a!cd")?;
    holds(f, &target, b"ab?d")
}

fn a_clone_extends_its_target(f: &Fixture<'_>) -> Check {
    let (source, target) = (grains(f, "a", b"ab")?, grains(f, "b", b"x")?);
    clone(f, (&source, 0), (&target, 2 * GRAIN), 2 * GRAIN)?;
    holds(f, &target, b"x\0ab")
}

fn a_clone_within_one_file(f: &Fixture<'_>) -> Check {
    let file = grains(f, "a", b"abcd")?;
    clone(f, (&file, 0), (&file, 2 * GRAIN), 2 * GRAIN)?;
    holds(f, &file, b"abab")
}

fn a_clone_ends_where_its_source_does(f: &Fixture<'_>) -> Check {
    let source = f.filled("a", &[7; GRAIN as usize + 5])?;
    let target = f.file("b")?;
    clone(f, (&source, 0), (&target, 0), GRAIN + 5)?;
    same(f.attr(&target)?.size, GRAIN + 5)?;
    same(f.read(&target, GRAIN, 9)?, (vec![7; 5], true))
}

fn a_clone_that_fits_no_blocks_is_inval(f: &Fixture<'_>) -> Check {
    let (source, target) = (grains(f, "a", b"ab")?, grains(f, "b", b"xyz")?);
    for (from, to, length) in [(1, 0, GRAIN), (0, 1, GRAIN), (0, 0, GRAIN + 1)] {
        fails(clone(f, (&source, from), (&target, to), length), &[Status::Inval])?;
    }
    let odd = f.filled("c", &[7; GRAIN as usize + 5])?;
    fails(clone(f, (&odd, 0), (&target, 0), GRAIN + 5), &[Status::Inval])?;
    holds(f, &target, b"xyz")
}

fn a_clone_of_more_than_there_is_is_inval(f: &Fixture<'_>) -> Check {
    let (source, target) = (grains(f, "a", b"ab")?, grains(f, "b", b"x")?);
    for (from, length) in [(0, 3 * GRAIN), (2 * GRAIN, GRAIN), (8 * GRAIN, GRAIN), (0, 0)] {
        fails(clone(f, (&source, from), (&target, 0), length), &[Status::Inval])?;
    }
    holds(f, &target, b"x")
}

fn a_clone_over_itself_is_inval(f: &Fixture<'_>) -> Check {
    let file = grains(f, "a", b"abc")?;
    fails(clone(f, (&file, 0), (&file, GRAIN), 2 * GRAIN), &[Status::Inval])?;
    holds(f, &file, b"abc")
}

fn directories_cannot_be_cloned(f: &Fixture<'_>) -> Check {
    let file = grains(f, "a", b"a")?;
    let refused = [Status::IsDir, Status::Inval];
    fails(clone(f, (&f.top, 0), (&file, 0), GRAIN), &refused)?;
    fails(clone(f, (&file, 0), (&f.top, 0), GRAIN), &refused)
}

fn a_clone_of_an_empty_file_is_empty(f: &Fixture<'_>) -> Check {
    let (source, target) = (f.file("a")?, grains(f, "b", b"x")?);
    clone(f, (&source, 0), (&target, 0), 0)?;
    holds(f, &target, b"x")
}

fn a_clone_asks_for_both_rights(f: &Fixture<'_>) -> Check {
    let (source, target) = (grains(f, "a", b"a")?, grains(f, "b", b"x")?);
    let as_alice = || {
        let done = f.fs.clone_range(&alice(), (&source, 0), (&target, 0), GRAIN);
        done.map(drop)
    };
    f.set(&source, &mode(0o604))?;
    f.set(&target, &mode(0o604))?;
    fails(as_alice(), &[Status::Acces])?;
    f.set(&source, &mode(0o600))?;
    f.set(&target, &ids(Some(ALICE), None))?;
    fails(as_alice(), &[Status::Acces])?;
    holds(f, &target, b"x")?;
    f.set(&source, &mode(0o604))?;
    as_alice()?;
    holds(f, &target, b"a")
}

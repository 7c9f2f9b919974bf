use comity_vfs::{Access, Create, Handle, Listed, ReadInto, Result, SetAttr, Status};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{Fixture, mode, name};

super::topic! { "handle"
    Needs::NONE => it_is_the_same_at_every_lookup, it_stays_good_over_renames,
        it_is_stale_after_the_last_name_went, every_verb_says_stale, a_removed_directory_is_stale,
        an_invented_handle_is_refused, a_handle_with_a_bit_flipped_opens_nothing_else,
        a_handle_of_another_length_opens_nothing_else;
}

/// The statuses that forged handles may get; the last is for file systems that need long to find
/// that no object has the handle.
const REFUSED: [Status; 3] = [Status::BadHandle, Status::Stale, Status::Delay];

fn it_is_the_same_at_every_lookup(f: &Fixture<'_>) -> Check {
    let (file, dir) = (f.file("a")?, f.dir("d")?);
    for _ in 0..3 {
        same((f.lookup("a")?.handle, f.lookup("d")?.handle), (file, dir))?;
    }
    for entry in f.list(&f.top, 0, Listed::Nodes, 10)? {
        let handle = entry.node.map_or(file, |node| node.handle);
        ensure([file, dir].contains(&handle), "a listing shows the same handles")?;
    }
    Ok(())
}

fn it_stays_good_over_renames(f: &Fixture<'_>) -> Check {
    let (dir, other) = (f.dir("d")?, f.dir("other")?);
    let file = f.file_in(&dir, "a")?;
    f.rename_between((&dir, "a"), (&f.top, "b"))?;
    f.rename_between((&f.top, "b"), (&dir, "c"))?;
    f.rename_between((&f.top, "d"), (&other, "e"))?;
    f.write(&file, 0, b"data")?;
    same(f.read(&file, 0, 9)?.0, b"data".to_vec())?;
    same(f.lookup_in(&dir, "c")?.handle, file)
}

fn it_is_stale_after_the_last_name_went(f: &Fixture<'_>) -> Check {
    let nodes = [f.file("a")?, f.symlink("l", b"a")?];
    f.remove("a")?;
    f.remove("l")?;
    // The next object may reuse the inode number.
    f.file("b")?;
    f.symlink("m", b"a")?;
    for node in nodes {
        fails(f.attr(&node), &[Status::Stale])?;
    }
    Ok(())
}

fn every_verb_says_stale(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    f.remove("a")?;
    all_fail(f, &file, &[Status::Stale])
}

fn a_removed_directory_is_stale(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    f.rmdir("d")?;
    all_fail(f, &dir, &[Status::Stale])
}

/// Checks that all verbs refuse `node`.
fn all_fail(f: &Fixture<'_>, node: &Handle, statuses: &[Status]) -> Check {
    fails(f.attr(node), statuses)?;
    fails(f.fs.properties(node), statuses)?;
    fails(f.fs.statfs(&f.owner, node), statuses)?;
    fails(f.set(node, &mode(0o777)), statuses)?;
    fails(f.fs.access(&f.owner, node, Access::ALL), statuses)?;
    fails(f.fs.lookup(&f.owner, node, name("x")?), statuses)?;
    fails(f.fs.parent(&f.owner, node), statuses)?;
    fails(f.fs.readlink(&f.owner, node), statuses)?;
    fails(read(f, node), statuses)?;
    fails(f.fs.write(&f.owner, node, 0, b"x"), statuses)?;
    match f.fs.commit(node) {
        Ok(None) => {}
        outcome => fails(outcome, statuses)?,
    }
    fails(f.fs.create(&f.owner, node, name("x")?, &Create::Guarded(mode(0o600))), statuses)?;
    fails(f.fs.mkdir(&f.owner, node, name("x")?, &mode(0o700)), statuses)?;
    fails(f.fs.symlink(&f.owner, node, name("x")?, b"y", &SetAttr::default()), statuses)?;
    fails(f.fs.remove(&f.owner, node, name("x")?), statuses)?;
    fails(f.fs.rmdir(&f.owner, node, name("x")?), statuses)?;
    fails(f.fs.rename(&f.owner, (node, name("x")?), (&f.top, name("y")?)), statuses)?;
    fails(f.link(node, "x"), statuses)?;
    fails(f.list(node, 0, Listed::Nodes, 1), statuses)
}

fn read(f: &Fixture<'_>, node: &Handle) -> Result<()> {
    let mut bytes = Vec::new();
    let mut into = ReadInto::new(&mut bytes);
    f.fs.read(&f.owner, node, 0, 10, &mut into).map(drop)
}

fn an_invented_handle_is_refused(f: &Fixture<'_>) -> Check {
    for byte in [0, 1, 0x7f, 0xff] {
        for length in 1..=comity_vfs::limits::HANDLE_BYTES_MAX {
            all_fail(f, &Handle::new(&vec![byte; length])?, &REFUSED)?;
        }
    }
    Ok(())
}

fn a_handle_with_a_bit_flipped_opens_nothing_else(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    let fileid = f.attr(&file)?.fileid;
    for bit in 0..file.bytes().len() * 8 {
        let mut bytes = file.bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        opens_nothing_else(f, &bytes, fileid)?;
    }
    same(f.read(&file, 0, 9)?.0, b"data".to_vec())
}

fn a_handle_of_another_length_opens_nothing_else(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let fileid = f.attr(&file)?.fileid;
    for length in 1..file.bytes().len() {
        opens_nothing_else(f, &file.bytes()[..length], fileid)?;
    }
    opens_nothing_else(f, &[file.bytes(), &[0]].concat(), fileid)
}

/// Checks that forged bytes are refused, or name the object `fileid`: a backend may ignore some
/// bytes of a handle.
fn opens_nothing_else(f: &Fixture<'_>, bytes: &[u8], fileid: u64) -> Check {
    match Handle::new(bytes).and_then(|handle| f.attr(&handle)) {
        Ok(attr) => same(attr.fileid, fileid),
        outcome => fails(outcome, &REFUSED),
    }
}

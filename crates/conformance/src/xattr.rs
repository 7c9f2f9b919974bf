use comity_vfs::{Handle, Name, Result, Special, Status, XattrMode};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{Fixture, bob, mode, name, tick};

super::topic! { "xattr"
    Needs::XATTRS => a_value_comes_back, an_unknown_one_is_noxattr, a_value_is_replaced,
        create_wants_it_new, replace_wants_it_there, a_removed_one_is_gone,
        all_names_are_listed, a_directory_has_them_too, an_empty_value_is_one,
        a_value_that_is_too_big, a_change_changes_the_ctime, special_files_have_none;
    Needs::XATTRS.and(Needs::IDENTITIES) =>
        a_caller_that_may_not_read_gets_none, a_caller_that_may_not_write_sets_none;
}

fn put(f: &Fixture<'_>, node: &Handle, at: &str, value: &[u8]) -> Result<()> {
    f.fs.setxattr(&f.owner, node, name(at)?, Some(value), XattrMode::Either).map(drop)
}

fn get(f: &Fixture<'_>, node: &Handle, at: &str) -> Result<Vec<u8>> {
    f.fs.getxattr(&f.owner, node, name(at)?)
}

fn a_value_comes_back(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let value: Vec<u8> = (0..=u8::MAX).collect();
    put(f, &file, "x", &value)?;
    same(get(f, &file, "x")?, value)
}

fn an_unknown_one_is_noxattr(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    fails(get(f, &file, "x"), &[Status::NoXattr])?;
    let removed = f.fs.setxattr(&f.owner, &file, name("x")?, None, XattrMode::Either);
    fails(removed, &[Status::NoXattr])
}

fn a_value_is_replaced(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    for value in [&b"long value"[..], b"short", b"a longer value than before"] {
        put(f, &file, "x", value)?;
        same(get(f, &file, "x")?, value.to_vec())?;
    }
    Ok(())
}

fn create_wants_it_new(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let create = |v| f.fs.setxattr(&f.owner, &file, name("x")?, Some(v), XattrMode::Create);
    create(b"one")?;
    fails(create(b"two"), &[Status::Exist])?;
    same(get(f, &file, "x")?, b"one".to_vec())
}

fn replace_wants_it_there(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let replace = |v| f.fs.setxattr(&f.owner, &file, name("x")?, Some(v), XattrMode::Replace);
    fails(replace(b"one"), &[Status::NoXattr])?;
    put(f, &file, "x", b"one")?;
    replace(b"two")?;
    same(get(f, &file, "x")?, b"two".to_vec())
}

fn a_removed_one_is_gone(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    put(f, &file, "x", b"one")?;
    put(f, &file, "y", b"two")?;
    f.fs.setxattr(&f.owner, &file, name("x")?, None, XattrMode::Either)?;
    fails(get(f, &file, "x"), &[Status::NoXattr])?;
    same(get(f, &file, "y")?, b"two".to_vec())
}

fn all_names_are_listed(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    same(f.fs.listxattr(&f.owner, &file)?.len(), 0)?;
    let bytes = [b'n', 0xff, 0xfe];
    let value = Some(&b"v"[..]);
    f.fs.setxattr(&f.owner, &file, Name::new(&bytes)?, value, XattrMode::Either)?;
    for number in 0..20 {
        put(f, &file, &format!("name-{number}"), b"v")?;
    }
    let names = f.fs.listxattr(&f.owner, &file)?;
    same(names.len(), 21)?;
    ensure(names.iter().any(|name| **name == bytes), "names are bytes")?;
    ensure(names.iter().any(|name| **name == *b"name-7"), "names have no prefix")
}

fn a_directory_has_them_too(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    put(f, &dir, "x", b"one")?;
    same(get(f, &dir, "x")?, b"one".to_vec())
}

fn an_empty_value_is_one(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    put(f, &file, "x", b"")?;
    same(get(f, &file, "x")?, vec![])?;
    same(f.fs.listxattr(&f.owner, &file)?.len(), 1)
}

fn a_value_that_is_too_big(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let big = vec![1; comity_vfs::limits::XATTR_BYTES_MAX + 1];
    fails(put(f, &file, "x", &big), &[Status::XattrTooBig, Status::NoSpc])?;
    fails(get(f, &file, "x"), &[Status::NoXattr])
}

fn a_change_changes_the_ctime(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let before = f.attr(&file)?;
    tick();
    put(f, &file, "x", b"one")?;
    let after = f.attr(&file)?;
    ensure(after.ctime > before.ctime, "the ctime grew")?;
    same(after.mtime, before.mtime)
}

/// As on Linux, special files have no user attributes: a program that copies a tree asks for those
/// of every object.
fn special_files_have_none(f: &Fixture<'_>) -> Check {
    let made = f.fs.mknod(&f.owner, &f.top, name("p")?, Special::Fifo, &mode(0o644))?;
    let fifo = made.value.handle;
    same(f.fs.listxattr(&f.owner, &fifo)?.len(), 0)?;
    fails(get(f, &fifo, "x"), &[Status::NoXattr])?;
    fails(put(f, &fifo, "x", b"one"), &[Status::Perm])?;
    let removed = f.fs.setxattr(&f.owner, &fifo, name("x")?, None, XattrMode::Either);
    fails(removed, &[Status::Perm])
}

fn a_caller_that_may_not_read_gets_none(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    put(f, &file, "x", b"one")?;
    f.fs.getxattr(&bob(), &file, name("x")?)?;
    f.set(&file, &mode(0o600))?;
    fails(f.fs.getxattr(&bob(), &file, name("x")?), &[Status::Acces])
}

fn a_caller_that_may_not_write_sets_none(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let set = f.fs.setxattr(&bob(), &file, name("x")?, Some(b"v"), XattrMode::Either);
    fails(set, &[Status::Acces])?;
    same(f.fs.listxattr(&f.owner, &file)?.len(), 0)
}

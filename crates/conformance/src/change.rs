//! Attributes from before and after a change (RFC 1813, 2.6: weak cache consistency): if a verb
//! returns them, they must be correct.

use comity_vfs::{Attr, Change, Create, Disk, Result, Special};

use super::Needs;
use super::failure::{Check, ensure, same};
use super::fixture::{Fixture, mode, name, size, tick};

super::topic! { "change"
    Needs::NONE => of_a_setattr, of_a_write, of_a_create, of_a_mkdir, of_a_symlink, of_a_mknod,
        of_a_remove, of_an_rmdir, of_a_link, of_a_rename_within, of_a_rename_across,
        of_a_create_that_finds_its_file, the_parts_fit_together;
    Needs::XATTRS => of_an_attribute;
    Needs::ALLOCATE => of_an_allocation;
}

/// Runs `work` on objects, and compares the attributes that it returns for each with those of
/// getattr. Nothing else may use the case's directory.
fn told<const N: usize>(
    f: &Fixture<'_>,
    nodes: [&comity_vfs::Handle; N],
    work: impl FnOnce() -> Result<[Change<Disk>; N]>,
) -> Check {
    let mut before = Vec::new();
    for node in nodes {
        before.push(f.attr(node)?);
    }
    tick();
    let changes = work()?;
    for ((node, before), change) in nodes.into_iter().zip(before).zip(changes) {
        let after = f.attr(node)?;
        ensure(change.before.is_none_or(|told| tells(told, before)), "before is as it was")?;
        ensure(change.after.is_none_or(|told| alike(told, after)), "after is as it is")?;
    }
    Ok(())
}

/// Compares only the attributes from before a change on which a cache relies (`wcc_attr`,
/// `change_info4`).
fn tells(one: Attr<Disk>, other: Attr<Disk>) -> bool {
    let told = |attr: Attr<Disk>| (attr.size, attr.mtime, attr.ctime, attr.change);
    told(one) == told(other)
}

/// Compares attributes except the access time and the space used, which may change without a call.
fn alike(one: Attr<Disk>, other: Attr<Disk>) -> bool {
    Attr { atime: other.atime, used: other.used, ..one } == other
}

fn of_a_setattr(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    for set in [mode(0o600), size(2), size(10)] {
        told(f, [&file], || Ok([f.set(&file, &set)?]))?;
    }
    Ok(())
}

fn of_a_write(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    for offset in [0, 2, 10_000] {
        told(f, [&file], || Ok([f.fs.write(&f.owner, &file, offset, b"data")?.change]))?;
    }
    Ok(())
}

fn of_a_create(f: &Fixture<'_>) -> Check {
    let how = Create::Guarded(mode(0o600));
    told(f, [&f.top], || Ok([f.fs.create(&f.owner, &f.top, name("a")?, &how)?.change]))?;
    let how = Create::Exclusive([3; 8]);
    told(f, [&f.top], || Ok([f.fs.create(&f.owner, &f.top, name("b")?, &how)?.change]))
}

fn of_a_mkdir(f: &Fixture<'_>) -> Check {
    let set = mode(0o700);
    told(f, [&f.top], || Ok([f.fs.mkdir(&f.owner, &f.top, name("a")?, &set)?.change]))
}

fn of_a_symlink(f: &Fixture<'_>) -> Check {
    let set = mode(0o777);
    told(f, [&f.top], || Ok([f.fs.symlink(&f.owner, &f.top, name("a")?, b"b", &set)?.change]))
}

fn of_a_mknod(f: &Fixture<'_>) -> Check {
    let (fifo, set) = (Special::Fifo, mode(0o700));
    told(f, [&f.top], || Ok([f.fs.mknod(&f.owner, &f.top, name("a")?, fifo, &set)?.change]))
}

fn of_a_remove(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    told(f, [&f.top], || Ok([f.remove("a")?]))
}

fn of_an_rmdir(f: &Fixture<'_>) -> Check {
    f.dir("a")?;
    told(f, [&f.top], || Ok([f.rmdir("a")?]))
}

fn of_a_link(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    told(f, [&f.top], || Ok([f.fs.link(&f.owner, &file, &f.top, name("b")?)?.change]))
}

fn of_a_rename_within(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    told(f, [&f.top, &f.top], || f.rename("a", "b").map(|changes| changes.into()))
}

fn of_a_rename_across(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    for (number, moved) in [f.file("a")?, f.dir("b")?].into_iter().enumerate() {
        let old = ["a", "b"][number];
        told(f, [&f.top, &dir], || {
            f.rename_between((&f.top, old), (&dir, old)).map(|changes| changes.into())
        })?;
        f.attr(&moved)?;
    }
    Ok(())
}

fn of_a_create_that_finds_its_file(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    let how = Create::Unchecked(size(0));
    told(f, [&f.top], || Ok([f.fs.create(&f.owner, &f.top, name("a")?, &how)?.change]))
}

fn the_parts_fit_together(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let first = f.fs.write(&f.owner, &file, 0, b"abc")?.change;
    let second = f.fs.write(&f.owner, &file, 3, b"def")?.change;
    let (Some(after), Some(before)) = (first.after, second.before) else { return Ok(()) };
    same((after.size, after.mtime, after.ctime), (before.size, before.mtime, before.ctime))
}

fn of_an_attribute(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let either = comity_vfs::XattrMode::Either;
    told(f, [&file], || Ok([f.fs.setxattr(&f.owner, &file, name("x")?, Some(b"value"), either)?]))
}

fn of_an_allocation(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    told(f, [&file], || Ok([f.fs.allocate(&f.owner, &file, 0, 10_000)?]))
}

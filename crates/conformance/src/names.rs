use comity_vfs::{Access, FileType, Handle, Status};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{Fixture, name};

super::topic! { "names"
    Needs::NONE => an_unknown_name_is_noent, a_file_has_no_entries, case_matters,
        lookup_tells_the_directory,
        the_parent_of_a_directory_is_where_it_was_made, the_parent_follows_a_rename,
        the_parent_of_the_root_is_the_root, a_file_has_no_parent, the_root_is_a_directory,
        directories_that_are_told_hold_the_file_now,
        properties_are_sane, access_grants_the_owner_what_makes_sense,
        access_asks_nothing_that_was_not_wanted;
}

fn an_unknown_name_is_noent(f: &Fixture<'_>) -> Check {
    fails(f.lookup("a"), &[Status::NoEnt])
}

fn a_file_has_no_entries(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    fails(f.lookup_in(&file, "b"), &[Status::NotDir])?;
    let link = f.symlink("l", b".")?;
    fails(f.lookup_in(&link, "a"), &[Status::NotDir, Status::SymLink])
}

fn case_matters(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    let other = f.lookup("A");
    if f.fs.properties(&f.top)?.case_insensitive {
        return other.map(drop).map_err(Into::into);
    }
    fails(other, &[Status::NoEnt])
}

fn lookup_tells_the_directory(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    let entry = f.fs.lookup(&f.owner, &f.top, name("a")?)?;
    let top = f.attr(&f.top)?;
    ensure(entry.dir.is_none_or(|dir| dir.fileid == top.fileid), "it is the directory's attributes")
}

fn the_parent_of_a_directory_is_where_it_was_made(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    let below = f.dir_in(&dir, "e")?;
    let parent = f.fs.parent(&f.owner, &below)?;
    same(parent.handle, dir)?;
    same(parent.attr.fileid, f.attr(&dir)?.fileid)?;
    same(f.fs.parent(&f.owner, &dir)?.handle, f.top)
}

fn the_parent_follows_a_rename(f: &Fixture<'_>) -> Check {
    let (one, other) = (f.dir("one")?, f.dir("other")?);
    let moved = f.dir_in(&one, "d")?;
    f.rename_between((&one, "d"), (&other, "e"))?;
    same(f.fs.parent(&f.owner, &moved)?.handle, other)
}

fn the_parent_of_the_root_is_the_root(f: &Fixture<'_>) -> Check {
    same(f.fs.parent(&f.owner, &f.fs.root())?.handle, f.fs.root())
}

fn a_file_has_no_parent(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    fails(f.fs.parent(&f.owner, &file), &[Status::NotDir])
}

fn directories_that_are_told_hold_the_file_now(f: &Fixture<'_>) -> Check {
    let (one, other) = (f.dir("one")?, f.dir("other")?);
    let file = f.file_in(&one, "a")?;
    let told_are_among = |holders: &[Handle]| {
        let told = f.fs.directories_of(&file)?;
        ensure(told.iter().all(|dir| holders.contains(dir)), "a directory does not hold the file")
    };
    told_are_among(&[one])?;
    f.rename_between((&one, "a"), (&other, "b"))?;
    told_are_among(&[other])
}

fn the_root_is_a_directory(f: &Fixture<'_>) -> Check {
    same(f.attr(&f.fs.root())?.file_type, FileType::Directory)
}

fn properties_are_sane(f: &Fixture<'_>) -> Check {
    let properties = f.fs.properties(&f.top)?;
    ensure(properties.file_size_max >= 1 << 40, "files may be large")?;
    ensure(properties.name_bytes_max == 255, "names of 255 bytes")?;
    ensure(properties.links_max > 1, "more than one link")?;
    ensure(properties.case_preserving, "names come back as they were given")?;
    let delta = properties.time_delta;
    ensure(delta.seconds <= 2 && delta.nanoseconds < 1_000_000_000, "times are fine enough")
}

fn access_grants_the_owner_what_makes_sense(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let rights = Access::READ | Access::MODIFY | Access::EXTEND;
    ensure(f.may(&f.owner, &file, rights)?, "the owner of a file reads and writes")?;
    ensure(!f.may(&f.owner, &file, Access::EXECUTE)?, "nobody may execute it")?;
    let rights = rights | Access::LOOKUP | Access::DELETE;
    ensure(f.may(&f.owner, &f.top, rights)?, "the owner of a directory may change it")
}

fn access_asks_nothing_that_was_not_wanted(f: &Fixture<'_>) -> Check {
    for wanted in [Access::NONE, Access::READ, Access::MODIFY | Access::LOOKUP] {
        let (granted, attr) = f.fs.access(&f.owner, &f.top, wanted)?;
        ensure(wanted.contains(granted), "no more is granted than was wanted")?;
        same(attr.fileid, f.attr(&f.top)?.fileid)?;
    }
    Ok(())
}

use comity_vfs::Status;

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{Fixture, mode, name, tick};

super::topic! { "link"
    Needs::NONE => both_names_are_one_object, data_written_by_one_name_is_read_by_the_other,
        the_object_lives_until_its_last_name_goes, link_refuses_a_name_that_is_there,
        a_directory_gets_no_second_name, a_link_to_a_link_is_not_followed,
        links_are_counted_and_the_ctime_changes, a_file_holds_no_links,
        a_removed_file_gets_no_name, one_mode_under_all_names, a_hundred_links;
}

fn both_names_are_one_object(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let attr = f.link(&file, "b")?;
    same(attr.links, 2)?;
    let (a, b) = (f.lookup("a")?, f.lookup("b")?);
    same((a.handle, a.attr), (b.handle, b.attr))
}

fn data_written_by_one_name_is_read_by_the_other(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.link(&file, "b")?;
    f.write(&file, 0, b"data")?;
    let other = f.lookup("b")?;
    same(other.attr.size, 4)?;
    same(f.read(&other.handle, 0, 9)?.0, b"data".to_vec())
}

fn the_object_lives_until_its_last_name_goes(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    f.link(&file, "b")?;
    f.remove("a")?;
    same(f.attr(&file)?.links, 1)?;
    same(f.read(&file, 0, 9)?.0, b"data".to_vec())?;
    f.remove("b")?;
    fails(f.attr(&file), &[Status::Stale])
}

fn link_refuses_a_name_that_is_there(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.dir("d")?;
    for name in ["a", "d"] {
        fails(f.link(&file, name), &[Status::Exist])?;
    }
    same(f.attr(&file)?.links, 1)
}

fn a_directory_gets_no_second_name(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    fails(f.link(&dir, "e"), &[Status::Perm, Status::IsDir, Status::Inval])
}

fn a_link_to_a_link_is_not_followed(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    let link = f.symlink("l", b"a")?;
    f.link(&link, "m")?;
    same(f.lookup("m")?.handle, link)?;
    same(f.lookup("a")?.attr.links, 1)
}

fn links_are_counted_and_the_ctime_changes(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let before = f.attr(&file)?;
    tick();
    f.link(&file, "b")?;
    let linked = f.attr(&file)?;
    ensure(linked.ctime > before.ctime, "a link changes the ctime")?;
    same(linked.mtime, before.mtime)?;
    tick();
    f.remove("b")?;
    ensure(f.attr(&file)?.ctime > linked.ctime, "a removed link changes the ctime")
}

fn a_file_holds_no_links(f: &Fixture<'_>) -> Check {
    let (one, other) = (f.file("a")?, f.file("b")?);
    let linked = f.fs.link(&f.owner, &one, &other, name("c")?);
    fails(linked, &[Status::NotDir])
}

fn a_removed_file_gets_no_name(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.remove("a")?;
    fails(f.link(&file, "b"), &[Status::Stale])?;
    fails(f.lookup("b"), &[Status::NoEnt])
}

fn one_mode_under_all_names(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.link(&file, "b")?;
    f.set(&f.lookup("b")?.handle, &mode(0o600))?;
    same(f.lookup("a")?.attr.mode.bits(), 0o600)
}

fn a_hundred_links(f: &Fixture<'_>) -> Check {
    let file = f.file("0")?;
    for number in 1..100 {
        same(f.link(&file, &number.to_string())?.links, number + 1)?;
    }
    for number in 0..99 {
        f.remove(&number.to_string())?;
    }
    same(f.attr(&file)?.links, 1)
}

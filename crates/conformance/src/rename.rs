use comity_vfs::{Change, Disk, Status};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{Fixture, tick};

super::topic! { "rename"
    Needs::NONE => the_object_keeps_its_handle, within_a_directory_only_the_name_changes,
        a_file_replaces_a_file, a_file_replaces_a_link, a_link_is_moved_not_followed,
        a_directory_replaces_an_empty_one, a_directory_does_not_replace_a_full_one,
        a_file_does_not_replace_a_directory, a_directory_does_not_replace_a_file,
        to_the_same_name_does_nothing, two_links_of_one_file_both_stay,
        a_directory_does_not_go_below_itself, a_directory_does_not_replace_what_holds_it,
        an_unknown_name_is_noent, the_entries_of_a_directory_move_with_it,
        link_counts_follow_directories, a_file_is_no_place, times_of_both_directories_change,
        a_replaced_file_is_stale, many_renames_keep_all_names;
}

fn the_object_keeps_its_handle(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    let dir = f.dir("d")?;
    f.rename_between((&f.top, "a"), (&dir, "b"))?;
    same(f.lookup_in(&dir, "b")?.handle, file)?;
    same(f.read(&file, 0, 9)?.0, b"data".to_vec())?;
    fails(f.lookup("a"), &[Status::NoEnt])
}

fn within_a_directory_only_the_name_changes(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.rename("a", "b")?;
    same(f.lookup("b")?.handle, file)?;
    same(f.names(&f.top, 10)?, vec![b"b".to_vec()])
}

fn a_file_replaces_a_file(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"new")?;
    f.filled("b", b"old data")?;
    f.rename("a", "b")?;
    let node = f.lookup("b")?;
    same((node.handle, node.attr.size, node.attr.links), (file, 3, 1))?;
    same(f.names(&f.top, 10)?, vec![b"b".to_vec()])
}

fn a_file_replaces_a_link(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.symlink("l", b"c")?;
    f.rename("a", "l")?;
    same(f.lookup("l")?.handle, file)?;
    fails(f.lookup("c"), &[Status::NoEnt])
}

fn a_link_is_moved_not_followed(f: &Fixture<'_>) -> Check {
    let link = f.symlink("l", b"a")?;
    let file = f.file("a")?;
    f.rename("l", "m")?;
    same(f.lookup("m")?.handle, link)?;
    same(f.lookup("a")?.handle, file)
}

fn a_directory_replaces_an_empty_one(f: &Fixture<'_>) -> Check {
    let moved = f.dir("d")?;
    f.file_in(&moved, "a")?;
    let replaced = f.dir("e")?;
    f.rename("d", "e")?;
    same(f.lookup("e")?.handle, moved)?;
    fails(f.attr(&replaced), &[Status::Stale])?;
    same(f.names(&f.top, 10)?, vec![b"e".to_vec()])
}

fn a_directory_does_not_replace_a_full_one(f: &Fixture<'_>) -> Check {
    let moved = f.dir("d")?;
    let full = f.dir("e")?;
    f.file_in(&full, "a")?;
    fails(f.rename("d", "e"), &[Status::NotEmpty, Status::Exist])?;
    same((f.lookup("d")?.handle, f.lookup("e")?.handle), (moved, full))
}

fn a_file_does_not_replace_a_directory(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    f.dir("d")?;
    fails(f.rename("a", "d"), &[Status::IsDir, Status::Exist])?;
    same(f.names(&f.top, 10)?.len(), 2)
}

fn a_directory_does_not_replace_a_file(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    f.dir("d")?;
    fails(f.rename("d", "a"), &[Status::NotDir, Status::Exist])?;
    same(f.names(&f.top, 10)?.len(), 2)
}

fn to_the_same_name_does_nothing(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    let before = f.attr(&f.top)?;
    f.rename("a", "a")?;
    same(f.lookup("a")?.handle, file)?;
    same(f.attr(&f.top)?.mtime, before.mtime)?;
    f.dir("d")?;
    f.rename("d", "d").map(drop).map_err(Into::into)
}

fn two_links_of_one_file_both_stay(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.link(&file, "b")?;
    f.rename("a", "b")?;
    same(f.names(&f.top, 10)?, vec![b"a".to_vec(), b"b".to_vec()])?;
    same(f.attr(&file)?.links, 2)
}

fn a_directory_does_not_go_below_itself(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    let below = f.dir_in(&f.dir_in(&dir, "e")?, "f")?;
    fails(f.rename_between((&f.top, "d"), (&dir, "x")), &[Status::Inval])?;
    fails(f.rename_between((&f.top, "d"), (&below, "x")), &[Status::Inval])?;
    same(f.lookup("d")?.handle, dir)
}

fn a_directory_does_not_replace_what_holds_it(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    let below = f.dir_in(&dir, "e")?;
    f.file_in(&below, "a")?;
    let moved = f.rename_between((&below, "a"), (&f.top, "d"));
    fails(moved, &[Status::IsDir, Status::NotEmpty, Status::Exist])?;
    let moved = f.rename_between((&dir, "e"), (&f.top, "d"));
    fails(moved, &[Status::NotEmpty, Status::Exist])
}

fn an_unknown_name_is_noent(f: &Fixture<'_>) -> Check {
    f.file("b")?;
    fails(f.rename("a", "b"), &[Status::NoEnt])?;
    fails(f.rename("a", "a"), &[Status::NoEnt])?;
    f.lookup("b")?;
    Ok(())
}

fn the_entries_of_a_directory_move_with_it(f: &Fixture<'_>) -> Check {
    let (dir, other) = (f.dir("d")?, f.dir("other")?);
    let file = f.file_in(&dir, "a")?;
    f.rename_between((&f.top, "d"), (&other, "e"))?;
    let moved = f.lookup_in(&other, "e")?;
    same(moved.handle, dir)?;
    same(f.lookup_in(&moved.handle, "a")?.handle, file)
}

fn link_counts_follow_directories(f: &Fixture<'_>) -> Check {
    let (one, other) = (f.dir("one")?, f.dir("other")?);
    f.dir_in(&one, "d")?;
    let links = |dir| f.attr(dir).map(|attr| attr.links);
    if links(&one)? != 3 {
        // This file system does not count subdirectories as links.
        return Ok(());
    }
    f.rename_between((&one, "d"), (&other, "e"))?;
    same((links(&one)?, links(&other)?), (2, 3))?;
    f.dir_in(&one, "d")?;
    f.rename_between((&one, "d"), (&other, "e"))?;
    same((links(&one)?, links(&other)?), (2, 3))
}

fn a_file_is_no_place(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.file("b")?;
    fails(f.rename_between((&f.top, "b"), (&file, "c")), &[Status::NotDir])?;
    fails(f.rename_between((&file, "c"), (&f.top, "b")), &[Status::NotDir])
}

fn times_of_both_directories_change(f: &Fixture<'_>) -> Check {
    let (one, other) = (f.dir("one")?, f.dir("other")?);
    f.file_in(&one, "a")?;
    let before = (f.attr(&one)?, f.attr(&other)?);
    tick();
    let changes = f.rename_between((&one, "a"), (&other, "a"))?;
    let after = (f.attr(&one)?, f.attr(&other)?);
    ensure(after.0.mtime > before.0.mtime, "the source's mtime grew")?;
    ensure(after.1.mtime > before.1.mtime, "the target's mtime grew")?;
    let tells = |change: Change<Disk>, dir: u64| change.after.is_none_or(|a| a.fileid == dir);
    ensure(tells(changes.0, after.0.fileid), "the source's change comes first")?;
    ensure(tells(changes.1, after.1.fileid), "the target's change comes second")
}

fn a_replaced_file_is_stale(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    let replaced = f.file("b")?;
    let kept = f.file("c")?;
    f.link(&kept, "d")?;
    f.rename("a", "b")?;
    f.rename("b", "c")?;
    fails(f.attr(&replaced), &[Status::Stale])?;
    same(f.attr(&kept)?.links, 1)
}

fn many_renames_keep_all_names(f: &Fixture<'_>) -> Check {
    let dirs = [f.dir("one")?, f.dir("other")?];
    for number in 0..50 {
        f.file_in(&dirs[0], &number.to_string())?;
    }
    for round in 0..4 {
        let (from, to) = (&dirs[round % 2], &dirs[(round + 1) % 2]);
        for number in 0..50 {
            f.rename_between((from, &number.to_string()), (to, &number.to_string()))?;
        }
        same(f.names(from, 7)?.len(), 0)?;
        same(f.names(to, 7)?.len(), 50)?;
    }
    Ok(())
}

use comity_vfs::Status;

use super::Needs;
use super::failure::{Check, fails, same};
use super::fixture::{Fixture, name};

super::topic! { "remove"
    Needs::NONE => a_removed_name_is_gone, remove_of_an_unknown_name_is_noent,
        remove_does_not_take_directories, rmdir_takes_directories_only, rmdir_wants_it_empty,
        rmdir_after_the_last_entry_went, rmdir_of_an_unknown_name_is_noent,
        remove_takes_the_link_not_its_target, a_name_can_be_used_again,
        nothing_is_made_in_a_removed_directory, a_files_entries_cannot_be_removed,
        a_directory_counts_what_is_left;
}

fn a_removed_name_is_gone(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    f.file("b")?;
    f.remove("a")?;
    fails(f.lookup("a"), &[Status::NoEnt])?;
    same(f.names(&f.top, 10)?, vec![b"b".to_vec()])
}

fn remove_of_an_unknown_name_is_noent(f: &Fixture<'_>) -> Check {
    fails(f.remove("a"), &[Status::NoEnt])
}

fn remove_does_not_take_directories(f: &Fixture<'_>) -> Check {
    f.dir("d")?;
    fails(f.remove("d"), &[Status::IsDir])?;
    f.lookup("d")?;
    Ok(())
}

fn rmdir_takes_directories_only(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    f.symlink("l", b".")?;
    fails(f.rmdir("a"), &[Status::NotDir])?;
    fails(f.rmdir("l"), &[Status::NotDir])?;
    same(f.names(&f.top, 10)?.len(), 2)
}

fn rmdir_wants_it_empty(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    f.file_in(&dir, "a")?;
    fails(f.rmdir("d"), &[Status::NotEmpty, Status::Exist])?;
    f.lookup_in(&dir, "a")?;
    Ok(())
}

fn rmdir_after_the_last_entry_went(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    f.file_in(&dir, "a")?;
    f.fs.remove(&f.owner, &dir, name("a")?)?;
    f.rmdir("d")?;
    fails(f.lookup("d"), &[Status::NoEnt])
}

fn rmdir_of_an_unknown_name_is_noent(f: &Fixture<'_>) -> Check {
    fails(f.rmdir("d"), &[Status::NoEnt])
}

fn remove_takes_the_link_not_its_target(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    f.symlink("l", b"a")?;
    f.remove("l")?;
    same(f.names(&f.top, 10)?, vec![b"a".to_vec()])
}

fn a_name_can_be_used_again(f: &Fixture<'_>) -> Check {
    let first = f.filled("a", b"old")?;
    f.remove("a")?;
    let second = f.dir("a")?;
    fails(f.attr(&first), &[Status::Stale])?;
    same(f.lookup("a")?.handle, second)
}

fn nothing_is_made_in_a_removed_directory(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    f.file("a")?;
    f.rmdir("d")?;
    fails(f.file_in(&dir, "b"), &[Status::Stale])?;
    fails(f.dir_in(&dir, "b"), &[Status::Stale])?;
    fails(f.rename_between((&f.top, "a"), (&dir, "a")), &[Status::Stale])?;
    f.lookup("a")?;
    Ok(())
}

fn a_files_entries_cannot_be_removed(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    fails(f.fs.remove(&f.owner, &file, name("b")?), &[Status::NotDir])?;
    fails(f.fs.rmdir(&f.owner, &file, name("b")?), &[Status::NotDir])
}

fn a_directory_counts_what_is_left(f: &Fixture<'_>) -> Check {
    let links = || f.attr(&f.top).map(|attr| attr.links);
    let empty = links()?;
    f.dir("d")?;
    f.dir("e")?;
    if links()? == empty {
        // This file system does not count subdirectories as links.
        return Ok(());
    }
    same(links()?, empty + 2)?;
    f.rmdir("d")?;
    same(links()?, empty + 1)
}

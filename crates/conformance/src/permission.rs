use comity_vfs::{Access, Cred, Disk, SetAttr, SetTime, Status};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{
    ALICE, BOB, Fixture, GUESTS, STAFF, alice, bob, caller, ids, mode, name, size, times,
};

super::topic! { "permission"
    Needs::IDENTITIES => the_maker_owns_what_is_made, others_read_what_the_mode_lets_them,
        the_group_class_decides_for_members, a_supplementary_group_counts,
        the_owner_reads_whatever_the_mode, the_owner_writes_whatever_the_mode,
        a_caller_that_may_execute_may_read, a_stranger_writes_nothing, a_stranger_cuts_nothing,
        access_tells_each_caller_the_truth, root_may_do_all, root_executes_only_what_someone_may,
        a_directory_without_x_hides_its_entries, a_directory_without_r_is_not_listed,
        a_directory_without_w_keeps_its_entries, only_the_owner_changes_the_mode,
        only_root_gives_files_away, an_owner_gives_a_file_to_a_group_of_theirs,
        only_the_owner_sets_times, a_writer_sets_times_to_now,
        a_sticky_directory_keeps_strangers_out, a_sticky_directory_lets_owners_remove,
        a_sticky_directory_holds_for_renames, a_moved_directory_must_be_writable,
        an_existing_name_is_told_before_permission;
}

/// Makes a directory that everybody may write to.
fn shared(f: &Fixture<'_>, bits: u32) -> std::result::Result<comity_vfs::Handle, Status> {
    let dir = f.dir("shared")?;
    f.set(&dir, &mode(bits))?;
    Ok(dir)
}

/// Makes a file that belongs to Alice, with data and a mode.
fn of_alice(f: &Fixture<'_>, bits: u32) -> std::result::Result<comity_vfs::Handle, Status> {
    let file = f.filled("a", b"data")?;
    f.set(&file, &ids(Some(ALICE), Some(STAFF)))?;
    f.set(&file, &mode(bits))?;
    Ok(file)
}

fn the_maker_owns_what_is_made(f: &Fixture<'_>) -> Check {
    let dir = shared(f, 0o777)?;
    for node in [f.file_as(&alice(), &dir, "a", 0o600)?, f.dir_as(&alice(), &dir, "d", 0o700)?] {
        same((node.attr.uid.number(), node.attr.gid.number()), (ALICE, STAFF))?;
    }
    let link = f.fs.symlink(&alice(), &dir, name("l")?, b"a", &SetAttr::default())?.value;
    same((link.attr.uid.number(), link.attr.gid.number()), (ALICE, STAFF))
}

fn others_read_what_the_mode_lets_them(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o604)?;
    same(f.read_as(&bob(), &file, 0, 9)?.0, b"data".to_vec())?;
    f.set(&file, &mode(0o660))?;
    fails(f.read_as(&bob(), &file, 0, 9), &[Status::Acces])
}

fn the_group_class_decides_for_members(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o606)?;
    let member = caller(BOB, STAFF, &[]);
    fails(f.read_as(&member, &file, 0, 9), &[Status::Acces])?;
    f.read_as(&bob(), &file, 0, 9)?;
    Ok(())
}

fn a_supplementary_group_counts(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o640)?;
    let member = caller(BOB, GUESTS, &[5, STAFF, 7]);
    f.read_as(&member, &file, 0, 9)?;
    fails(f.read_as(&caller(BOB, GUESTS, &[5, 7]), &file, 0, 9), &[Status::Acces])
}

fn the_owner_reads_whatever_the_mode(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o000)?;
    same(f.read_as(&alice(), &file, 0, 9)?.0, b"data".to_vec())?;
    ensure(!f.may(&alice(), &file, Access::READ)?, "but access says no")
}

fn the_owner_writes_whatever_the_mode(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o444)?;
    same(f.fs.write(&alice(), &file, 0, b"x")?.value, 1)?;
    f.fs.setattr(&alice(), &file, &size(2), None)?;
    same(f.attr(&file)?.size, 2)
}

fn a_caller_that_may_execute_may_read(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o711)?;
    same(f.read_as(&bob(), &file, 0, 9)?.0, b"data".to_vec())?;
    ensure(!f.may(&bob(), &file, Access::READ)?, "but access says no")
}

fn a_stranger_writes_nothing(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o755)?;
    fails(f.fs.write(&bob(), &file, 0, b"x"), &[Status::Acces])?;
    same(f.read(&file, 0, 9)?.0, b"data".to_vec())
}

fn a_stranger_cuts_nothing(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o755)?;
    fails(f.fs.setattr(&bob(), &file, &size(0), None), &[Status::Acces, Status::Perm])?;
    same(f.attr(&file)?.size, 4)
}

fn access_tells_each_caller_the_truth(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o751)?;
    let member = caller(BOB, STAFF, &[]);
    let all = Access::READ | Access::MODIFY | Access::EXTEND | Access::EXECUTE;
    let truth: [(Cred<Disk>, Access); 4] = [
        (alice(), all),
        (member, Access::READ | Access::EXECUTE),
        (bob(), Access::EXECUTE),
        (f.owner.clone(), all),
    ];
    for (cred, granted) in truth {
        same(f.fs.access(&cred, &file, all)?.0, granted)?;
    }
    Ok(())
}

fn root_may_do_all(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o000)?;
    same(f.read(&file, 0, 9)?.0, b"data".to_vec())?;
    f.write(&file, 0, b"x")?;
    let dir = f.dir_as(&f.owner, &f.top, "d", 0o000)?.handle;
    f.set(&dir, &ids(Some(ALICE), None))?;
    f.file_in(&dir, "a")?;
    same(f.names(&dir, 10)?.len(), 1)
}

fn root_executes_only_what_someone_may(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o666)?;
    ensure(!f.may(&f.owner, &file, Access::EXECUTE)?, "nobody may execute it")?;
    f.set(&file, &mode(0o610))?;
    ensure(f.may(&f.owner, &file, Access::EXECUTE)?, "somebody may")
}

fn a_directory_without_x_hides_its_entries(f: &Fixture<'_>) -> Check {
    let dir = shared(f, 0o766)?;
    f.file_in(&dir, "a")?;
    fails(f.fs.lookup(&bob(), &dir, name("a")?), &[Status::Acces])?;
    fails(f.fs.lookup(&bob(), &dir, name("unknown")?), &[Status::Acces])?;
    fails(f.file_as(&bob(), &dir, "b", 0o600), &[Status::Acces])
}

fn a_directory_without_r_is_not_listed(f: &Fixture<'_>) -> Check {
    let dir = shared(f, 0o733)?;
    f.file_in(&dir, "a")?;
    let listed = f.fs.readdir(&bob(), &dir, 0, comity_vfs::Listed::Names, &mut |_| {
        std::ops::ControlFlow::Continue(())
    });
    fails(listed, &[Status::Acces])?;
    f.fs.lookup(&bob(), &dir, name("a")?)?;
    Ok(())
}

fn a_directory_without_w_keeps_its_entries(f: &Fixture<'_>) -> Check {
    let dir = shared(f, 0o755)?;
    let file = f.file_as(&f.owner, &dir, "a", 0o666)?.handle;
    let denied = [Status::Acces];
    fails(f.file_as(&bob(), &dir, "b", 0o600), &denied)?;
    fails(f.dir_as(&bob(), &dir, "b", 0o600), &denied)?;
    fails(f.fs.symlink(&bob(), &dir, name("b")?, b"x", &SetAttr::default()), &denied)?;
    fails(f.fs.remove(&bob(), &dir, name("a")?), &denied)?;
    fails(f.fs.rename(&bob(), (&dir, name("a")?), (&dir, name("b")?)), &denied)?;
    let linked = f.fs.link(&bob(), &file, &dir, name("b")?);
    fails(linked, &[Status::Acces, Status::Perm])?;
    same(f.names(&dir, 10)?, vec![b"a".to_vec()])
}

fn only_the_owner_changes_the_mode(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o666)?;
    fails(f.fs.setattr(&bob(), &file, &mode(0o777), None), &[Status::Perm])?;
    f.fs.setattr(&alice(), &file, &mode(0o640), None)?;
    f.set(&file, &mode(0o600))?;
    same(f.attr(&file)?.mode.bits(), 0o600)
}

fn only_root_gives_files_away(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o666)?;
    fails(f.fs.setattr(&alice(), &file, &ids(Some(BOB), None), None), &[Status::Perm])?;
    fails(f.fs.setattr(&bob(), &file, &ids(Some(BOB), None), None), &[Status::Perm])?;
    f.set(&file, &ids(Some(BOB), None))?;
    same(f.attr(&file)?.uid.number(), BOB)
}

fn an_owner_gives_a_file_to_a_group_of_theirs(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o666)?;
    let to = |gid| ids(None, Some(gid));
    fails(f.fs.setattr(&alice(), &file, &to(GUESTS), None), &[Status::Perm])?;
    let member = caller(ALICE, STAFF, &[GUESTS]);
    f.fs.setattr(&member, &file, &to(GUESTS), None)?;
    same(f.attr(&file)?.gid.number(), GUESTS)?;
    fails(f.fs.setattr(&bob(), &file, &to(GUESTS), None), &[Status::Perm])
}

fn only_the_owner_sets_times(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o666)?;
    let time = comity_vfs::Time { seconds: 5, nanoseconds: 6 };
    fails(f.fs.setattr(&bob(), &file, &times(time, time), None), &[Status::Perm])?;
    f.fs.setattr(&alice(), &file, &times(time, time), None)?;
    same(f.attr(&file)?.mtime, time)
}

fn a_writer_sets_times_to_now(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o662)?;
    let now = Some(SetTime::Now);
    let set = SetAttr { atime: now, mtime: now, ..SetAttr::default() };
    f.fs.setattr(&bob(), &file, &set, None)?;
    f.set(&file, &mode(0o664))?;
    fails(f.fs.setattr(&bob(), &file, &set, None), &[Status::Acces, Status::Perm])
}

const DENIED: [Status; 2] = [Status::Perm, Status::Acces];

fn a_sticky_directory_keeps_strangers_out(f: &Fixture<'_>) -> Check {
    let dir = shared(f, 0o1777)?;
    f.file_as(&alice(), &dir, "a", 0o666)?;
    f.dir_as(&alice(), &dir, "d", 0o777)?;
    fails(f.fs.remove(&bob(), &dir, name("a")?), &DENIED)?;
    fails(f.fs.rmdir(&bob(), &dir, name("d")?), &DENIED)?;
    same(f.names(&dir, 10)?.len(), 2)
}

fn a_sticky_directory_lets_owners_remove(f: &Fixture<'_>) -> Check {
    let dir = shared(f, 0o1777)?;
    f.set(&dir, &ids(Some(BOB), None))?;
    for who in [alice(), bob(), f.owner.clone()] {
        f.file_as(&alice(), &dir, "a", 0o666)?;
        f.fs.remove(&who, &dir, name("a")?)?;
    }
    Ok(())
}

fn a_sticky_directory_holds_for_renames(f: &Fixture<'_>) -> Check {
    let dir = shared(f, 0o1777)?;
    f.file_as(&alice(), &dir, "a", 0o666)?;
    f.file_as(&bob(), &dir, "b", 0o666)?;
    fails(f.fs.rename(&bob(), (&dir, name("a")?), (&dir, name("c")?)), &DENIED)?;
    fails(f.fs.rename(&bob(), (&dir, name("b")?), (&dir, name("a")?)), &DENIED)?;
    f.fs.rename(&bob(), (&dir, name("b")?), (&dir, name("c")?))?;
    same(f.names(&dir, 10)?, vec![b"a".to_vec(), b"c".to_vec()])
}

fn a_moved_directory_must_be_writable(f: &Fixture<'_>) -> Check {
    let dir = shared(f, 0o777)?;
    let other = f.dir("other")?;
    f.set(&other, &mode(0o777))?;
    f.dir_as(&alice(), &dir, "d", 0o755)?;
    let moved = |who| f.fs.rename(who, (&dir, name("d")?), (&other, name("d")?));
    fails(moved(&bob()), &[Status::Acces])?;
    f.fs.rename(&bob(), (&dir, name("d")?), (&dir, name("e")?))?;
    f.fs.rename(&alice(), (&dir, name("e")?), (&other, name("d")?))?;
    Ok(())
}

fn an_existing_name_is_told_before_permission(f: &Fixture<'_>) -> Check {
    let dir = shared(f, 0o755)?;
    f.file_as(&f.owner, &dir, "a", 0o644)?;
    fails(f.file_as(&bob(), &dir, "a", 0o600), &[Status::Exist, Status::Acces])?;
    fails(f.dir_as(&bob(), &dir, "a", 0o700), &[Status::Exist, Status::Acces])
}

use comity_vfs::{Access, Acl, AclEntry, AclKind, AclTag, Disk, Gid, Handle, Status, Uid};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{ALICE, BOB, Fixture, STAFF, alice, bob, caller, ids, mode};

super::topic! { "acl"
    Needs::ACLS => without_one_there_is_none, it_comes_back_as_set, the_mode_follows_it,
        it_follows_the_mode, one_that_says_no_more_than_a_mode_is_a_mode,
        one_without_its_parts_is_inval, it_can_be_removed, a_default_is_kept_apart,
        a_file_has_no_default, a_new_file_inherits_the_default,
        a_new_directory_inherits_and_hands_on, a_change_changes_the_ctime;
    Needs::ACLS.and(Needs::IDENTITIES) => a_named_user_gets_what_it_says,
        the_mask_limits_named_ones,
        a_named_group_gets_what_it_says, only_the_owner_sets_it;
}

fn acl(user: (u32, u8), group: (u32, u8), digits: [u8; 4]) -> Acl<Disk> {
    let [owner, group_obj, mask, other] = digits;
    let entries = [
        (AclTag::UserObj, owner),
        (AclTag::User(Uid::new(user.0)), user.1),
        (AclTag::GroupObj, group_obj),
        (AclTag::Group(Gid::new(group.0)), group.1),
        (AclTag::Mask, mask),
        (AclTag::Other, other),
    ];
    let entry = |(tag, permissions)| AclEntry { tag, permissions };
    Acl { entries: entries.into_iter().map(entry).collect() }
}

fn usual() -> Acl<Disk> {
    acl((BOB, 6), (STAFF, 5), [7, 4, 6, 1])
}

fn set(f: &Fixture<'_>, node: &Handle, kind: AclKind, acl: &Acl<Disk>) -> Check {
    f.fs.setacl(&f.owner, node, kind, Some(acl))?;
    Ok(())
}

fn without_one_there_is_none(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    same(f.fs.getacl(&file, AclKind::Access)?, None)?;
    same(f.fs.getacl(&f.top, AclKind::Default)?, None)
}

fn it_comes_back_as_set(f: &Fixture<'_>) -> Check {
    let (file, dir) = (f.file("a")?, f.dir("d")?);
    for node in [file, dir] {
        set(f, &node, AclKind::Access, &usual())?;
        same(f.fs.getacl(&node, AclKind::Access)?, Some(usual()))?;
    }
    Ok(())
}

fn the_mode_follows_it(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    set(f, &file, AclKind::Access, &usual())?;
    same(f.attr(&file)?.mode.bits(), 0o761)
}

fn it_follows_the_mode(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    set(f, &file, AclKind::Access, &usual())?;
    f.set(&file, &mode(0o640))?;
    let wanted = acl((BOB, 6), (STAFF, 5), [6, 4, 4, 0]);
    same(f.fs.getacl(&file, AclKind::Access)?, Some(wanted))
}

fn one_that_says_no_more_than_a_mode_is_a_mode(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    set(f, &file, AclKind::Access, &usual())?;
    let minimal = Acl::from_mode(comity_vfs::Mode::new(0o604));
    set(f, &file, AclKind::Access, &minimal)?;
    same(f.attr(&file)?.mode.bits(), 0o604)?;
    same(f.fs.getacl(&file, AclKind::Access)?, None)
}

fn one_without_its_parts_is_inval(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    for missing in [0, 2, 4, 5] {
        let mut acl = usual();
        acl.entries.remove(missing);
        let set = f.fs.setacl(&f.owner, &file, AclKind::Access, Some(&acl));
        fails(set, &[Status::Inval])?;
    }
    same(f.fs.getacl(&file, AclKind::Access)?, None)?;
    same(f.attr(&file)?.mode.bits(), 0o644)
}

fn it_can_be_removed(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    set(f, &file, AclKind::Access, &usual())?;
    f.fs.setacl(&f.owner, &file, AclKind::Access, None)?;
    same(f.fs.getacl(&file, AclKind::Access)?, None)?;
    f.fs.setacl(&f.owner, &file, AclKind::Access, None)?;
    Ok(())
}

fn a_default_is_kept_apart(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    set(f, &dir, AclKind::Default, &usual())?;
    same(f.fs.getacl(&dir, AclKind::Default)?, Some(usual()))?;
    same(f.fs.getacl(&dir, AclKind::Access)?, None)?;
    same(f.attr(&dir)?.mode.bits(), 0o755)?;
    f.fs.setacl(&f.owner, &dir, AclKind::Default, None)?;
    same(f.fs.getacl(&dir, AclKind::Default)?, None)
}

fn a_file_has_no_default(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let set = f.fs.setacl(&f.owner, &file, AclKind::Default, Some(&usual()));
    fails(set, &[Status::Acces, Status::Inval, Status::NotSupp, Status::NotDir])
}

fn a_new_file_inherits_the_default(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    set(f, &dir, AclKind::Default, &usual())?;
    let file = f.file_as(&f.owner, &dir, "a", 0o664)?;
    same(file.attr.mode.bits(), 0o660)?;
    let wanted = acl((BOB, 6), (STAFF, 5), [6, 4, 6, 0]);
    same(f.fs.getacl(&file.handle, AclKind::Access)?, Some(wanted))
}

fn a_new_directory_inherits_and_hands_on(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    set(f, &dir, AclKind::Default, &usual())?;
    let below = f.dir_as(&f.owner, &dir, "e", 0o775)?;
    same(below.attr.mode.bits(), 0o761)?;
    same(f.fs.getacl(&below.handle, AclKind::Default)?, Some(usual()))?;
    same(f.fs.getacl(&below.handle, AclKind::Access)?, Some(usual()))
}

fn a_change_changes_the_ctime(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let before = f.attr(&file)?;
    super::fixture::tick();
    set(f, &file, AclKind::Access, &usual())?;
    ensure(f.attr(&file)?.ctime > before.ctime, "the ctime grew")
}

/// Makes a file that belongs to Alice and has an ACL.
fn guarded(f: &Fixture<'_>, acl: &Acl<Disk>) -> std::result::Result<Handle, super::Failure> {
    let file = f.filled("a", b"data")?;
    f.set(&file, &ids(Some(ALICE), Some(1)))?;
    set(f, &file, AclKind::Access, acl)?;
    Ok(file)
}

fn a_named_user_gets_what_it_says(f: &Fixture<'_>) -> Check {
    let file = guarded(f, &acl((BOB, 6), (STAFF, 0), [0, 0, 7, 0]))?;
    same(f.fs.write(&bob(), &file, 0, b"x")?.value, 1)?;
    ensure(f.may(&bob(), &file, Access::READ | Access::MODIFY)?, "Bob reads and writes")?;
    let stranger = caller(BOB + 1, 2, &[]);
    fails(f.fs.write(&stranger, &file, 0, b"x"), &[Status::Acces])
}

fn the_mask_limits_named_ones(f: &Fixture<'_>) -> Check {
    let file = guarded(f, &acl((BOB, 7), (STAFF, 7), [7, 7, 4, 7]))?;
    for cred in [bob(), caller(9, STAFF, &[]), caller(9, 1, &[])] {
        ensure(f.may(&cred, &file, Access::READ)?, "the mask lets read")?;
        ensure(!f.may(&cred, &file, Access::MODIFY)?, "the mask forbids to write")?;
    }
    ensure(f.may(&caller(9, 9, &[]), &file, Access::MODIFY)?, "others are not masked")
}

fn a_named_group_gets_what_it_says(f: &Fixture<'_>) -> Check {
    let file = guarded(f, &acl((BOB, 0), (STAFF, 4), [7, 0, 7, 7]))?;
    let member = caller(9, 9, &[STAFF]);
    same(f.fs.access(&member, &file, Access::READ | Access::MODIFY)?.0, Access::READ)?;
    ensure(!f.may(&bob(), &file, Access::READ)?, "a named user is no other")
}

fn only_the_owner_sets_it(f: &Fixture<'_>) -> Check {
    let file = guarded(f, &usual())?;
    f.fs.setacl(&alice(), &file, AclKind::Access, Some(&usual()))?;
    let set = f.fs.setacl(&bob(), &file, AclKind::Access, Some(&usual()));
    fails(set, &[Status::Perm, Status::Acces])
}

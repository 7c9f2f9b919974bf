use comity_vfs::Status;

use super::Needs;
use super::failure::{Check, same};
use super::fixture::{
    ALICE, BOB, Fixture, GUESTS, STAFF, alice, bob, caller, ids, mode, name, size,
};

super::topic! { "set_id"
    Needs::IDENTITIES => a_write_by_another_clears_them, a_cut_by_another_clears_them,
        a_write_by_root_leaves_them, a_new_owner_clears_them, a_new_group_clears_them,
        a_directorys_bit_survives_a_new_group, a_stranger_to_the_group_cannot_set_the_bit,
        a_directorys_group_is_handed_down, a_directorys_bit_is_handed_to_directories,
        without_the_bit_the_makers_group_counts,
        a_new_file_of_a_stranger_to_the_group_lacks_the_bit;
}

fn of_alice(f: &Fixture<'_>, bits: u32) -> std::result::Result<comity_vfs::Handle, Status> {
    let file = f.filled("a", b"data")?;
    f.set(&file, &ids(Some(ALICE), Some(STAFF)))?;
    f.set(&file, &mode(bits))?;
    same_mode(f, &file, bits)
}

fn same_mode(
    f: &Fixture<'_>,
    file: &comity_vfs::Handle,
    bits: u32,
) -> std::result::Result<comity_vfs::Handle, Status> {
    let as_set = f.attr(file)?.mode.bits() == bits;
    if as_set { Ok(*file) } else { Err(Status::ServerFault) }
}

fn a_write_by_another_clears_them(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o6777)?;
    f.fs.write(&bob(), &file, 0, b"x")?;
    same(f.attr(&file)?.mode.bits(), 0o777)
}

fn a_cut_by_another_clears_them(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o6777)?;
    f.fs.setattr(&bob(), &file, &size(1), None)?;
    same(f.attr(&file)?.mode.bits(), 0o777)
}

fn a_write_by_root_leaves_them(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o6777)?;
    f.write(&file, 0, b"x")?;
    same(f.attr(&file)?.mode.bits(), 0o6777)
}

fn a_new_owner_clears_them(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o6755)?;
    f.set(&file, &ids(Some(BOB), None))?;
    same(f.attr(&file)?.mode.bits(), 0o755)
}

fn a_new_group_clears_them(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o6755)?;
    let member = caller(ALICE, STAFF, &[GUESTS]);
    f.fs.setattr(&member, &file, &ids(None, Some(GUESTS)), None)?;
    same(f.attr(&file)?.mode.bits(), 0o755)
}

fn a_directorys_bit_survives_a_new_group(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    f.set(&dir, &mode(0o2775))?;
    f.set(&dir, &ids(None, Some(GUESTS)))?;
    same(f.attr(&dir)?.mode.bits(), 0o2775)
}

fn a_stranger_to_the_group_cannot_set_the_bit(f: &Fixture<'_>) -> Check {
    let file = of_alice(f, 0o755)?;
    f.set(&file, &ids(None, Some(GUESTS)))?;
    f.fs.setattr(&alice(), &file, &mode(0o2755), None)?;
    same(f.attr(&file)?.mode.bits(), 0o755)?;
    f.fs.setattr(&caller(ALICE, STAFF, &[GUESTS]), &file, &mode(0o2755), None)?;
    same(f.attr(&file)?.mode.bits(), 0o2755)
}

fn set_group(f: &Fixture<'_>) -> std::result::Result<comity_vfs::Handle, Status> {
    let dir = f.dir("d")?;
    f.set(&dir, &ids(None, Some(GUESTS)))?;
    f.set(&dir, &mode(0o2777))?;
    Ok(dir)
}

fn a_directorys_group_is_handed_down(f: &Fixture<'_>) -> Check {
    let dir = set_group(f)?;
    let file = f.file_as(&alice(), &dir, "a", 0o664)?;
    same((file.attr.gid.number(), file.attr.mode.bits()), (GUESTS, 0o664))?;
    let link = f.fs.symlink(&alice(), &dir, name("l")?, b"a", &mode(0o777))?.value;
    same(link.attr.gid.number(), GUESTS)
}

fn a_directorys_bit_is_handed_to_directories(f: &Fixture<'_>) -> Check {
    let dir = set_group(f)?;
    let below = f.dir_as(&alice(), &dir, "e", 0o755)?;
    same((below.attr.gid.number(), below.attr.mode.bits()), (GUESTS, 0o2755))
}

fn without_the_bit_the_makers_group_counts(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    f.set(&dir, &ids(None, Some(GUESTS)))?;
    f.set(&dir, &mode(0o777))?;
    same(f.file_as(&alice(), &dir, "a", 0o664)?.attr.gid.number(), STAFF)
}

/// The file belongs to the group of the directory. Everybody who runs it would act for that group.
fn a_new_file_of_a_stranger_to_the_group_lacks_the_bit(f: &Fixture<'_>) -> Check {
    let dir = set_group(f)?;
    let file = f.file_as(&alice(), &dir, "a", 0o2755)?;
    same((file.attr.gid.number(), file.attr.mode.bits()), (GUESTS, 0o755))?;
    let file = f.file_as(&caller(ALICE, STAFF, &[GUESTS]), &dir, "b", 0o2755)?;
    same((file.attr.gid.number(), file.attr.mode.bits()), (GUESTS, 0o2755))
}

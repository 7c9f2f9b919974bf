use comity_vfs::{SetAttr, SetTime, Status, Time};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{Fixture, mode, size, tick, times};

super::topic! { "attributes"
    Needs::NONE => a_mode_is_set_exactly, set_id_and_sticky_bits_are_kept_by_their_owner,
        nothing_to_set_changes_nothing, times_are_set_to_the_nanosecond,
        one_time_leaves_the_other, now_is_now,
        impossible_nanoseconds_are_refused, a_guard_that_matches_lets_through,
        a_guard_that_does_not_match_changes_nothing, every_change_changes_the_ctime,
        a_mode_leaves_the_mtime, a_size_cuts_and_extends_by_zeros,
        bytes_that_were_cut_do_not_come_back,
        a_size_changes_the_mtime, a_directory_has_no_size_to_set, a_link_has_no_size_to_set,
        a_size_that_is_too_big_is_refused, several_attributes_at_once, sizes_around_four_gigabytes,
        a_directorys_mode_and_times, reading_does_not_change_the_ctime, the_ctime_cannot_be_set;
    Needs::EARLY_TIMES => times_before_1970_are_kept;
    Needs::IDENTITIES => ids_are_set, all_ids_of_32_bits;
}

const LONG_AGO: Time = Time { seconds: 1_000_000_000, nanoseconds: 123_456_789 };
const LATER: Time = Time { seconds: 1_100_000_000, nanoseconds: 987_654_321 };

fn a_mode_is_set_exactly(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    for bits in [0o000, 0o777, 0o600, 0o421, 0o755] {
        f.set(&file, &mode(bits))?;
        same(f.attr(&file)?.mode.bits(), bits)?;
    }
    Ok(())
}

fn set_id_and_sticky_bits_are_kept_by_their_owner(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    for bits in [0o4755, 0o2755, 0o6711] {
        f.set(&file, &mode(bits))?;
        same(f.attr(&file)?.mode.bits(), bits)?;
    }
    let dir = f.dir("d")?;
    f.set(&dir, &mode(0o1777))?;
    same(f.attr(&dir)?.mode.bits(), 0o1777)
}

fn nothing_to_set_changes_nothing(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let before = f.attr(&file)?;
    tick();
    f.set(&file, &SetAttr::default())?;
    same(f.attr(&file)?, before)
}

fn times_are_set_to_the_nanosecond(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.set(&file, &times(LONG_AGO, LATER))?;
    let attr = f.attr(&file)?;
    let grain = f.fs.properties(&file)?.time_delta;
    if grain == (Time { seconds: 0, nanoseconds: 1 }) {
        return same((attr.atime, attr.mtime), (LONG_AGO, LATER));
    }
    same((attr.atime.seconds, attr.mtime.seconds), (LONG_AGO.seconds, LATER.seconds))
}

fn times_before_1970_are_kept(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let time = Time { seconds: -86_400, nanoseconds: 999_999_999 };
    f.set(&file, &times(time, time))?;
    same(f.attr(&file)?.mtime, time)
}

fn one_time_leaves_the_other(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.set(&file, &times(LONG_AGO, LATER))?;
    f.set(&file, &SetAttr { atime: Some(SetTime::To(LATER)), ..SetAttr::default() })?;
    same((f.attr(&file)?.atime, f.attr(&file)?.mtime), (LATER, LATER))?;
    f.set(&file, &SetAttr { mtime: Some(SetTime::To(LONG_AGO)), ..SetAttr::default() })?;
    same((f.attr(&file)?.atime, f.attr(&file)?.mtime), (LATER, LONG_AGO))
}

fn now_is_now(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let made = f.attr(&file)?;
    f.set(&file, &times(LONG_AGO, LONG_AGO))?;
    let now = Some(SetTime::Now);
    f.set(&file, &SetAttr { atime: now, mtime: now, ..SetAttr::default() })?;
    let attr = f.attr(&file)?;
    ensure(attr.atime >= made.atime && attr.mtime >= made.mtime, "both times are recent")
}

fn impossible_nanoseconds_are_refused(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let time = Time { seconds: 1, nanoseconds: 1_000_000_000 };
    let before = f.attr(&file)?;
    fails(f.set(&file, &times(time, time)), &[Status::Inval])?;
    same(f.attr(&file)?, before)
}

fn a_guard_that_matches_lets_through(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let guard = f.attr(&file)?.ctime;
    f.fs.setattr(&f.owner, &file, &mode(0o600), Some(guard))?;
    same(f.attr(&file)?.mode.bits(), 0o600)
}

fn a_guard_that_does_not_match_changes_nothing(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let guard = f.attr(&file)?.ctime;
    tick();
    f.set(&file, &mode(0o640))?;
    let set = f.fs.setattr(&f.owner, &file, &mode(0o600), Some(guard));
    fails(set, &[Status::NotSync])?;
    same(f.attr(&file)?.mode.bits(), 0o640)
}

fn every_change_changes_the_ctime(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let sets = [mode(0o600), size(10), times(LONG_AGO, LATER), size(10), mode(0o600)];
    for set in sets {
        let before = f.attr(&file)?.ctime;
        tick();
        f.set(&file, &set)?;
        ensure(f.attr(&file)?.ctime > before, "the ctime grew")?;
    }
    Ok(())
}

fn a_mode_leaves_the_mtime(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.set(&file, &times(LONG_AGO, LATER))?;
    f.set(&file, &mode(0o600))?;
    let attr = f.attr(&file)?;
    same((attr.atime, attr.mtime), (LONG_AGO, LATER))
}

fn a_size_cuts_and_extends_by_zeros(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abcdef")?;
    f.set(&file, &size(3))?;
    same(f.read(&file, 0, 10)?, (b"abc".to_vec(), true))?;
    f.set(&file, &size(6))?;
    same(f.read(&file, 0, 10)?, (b"abc\0\0\0".to_vec(), true))?;
    f.set(&file, &size(0))?;
    same(f.read(&file, 0, 10)?, (vec![], true))
}

fn bytes_that_were_cut_do_not_come_back(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", &[7; 20_000])?;
    for end in [10_001, 8_192, 4_095, 1] {
        f.set(&file, &size(end))?;
        f.set(&file, &size(20_000))?;
        let data = f.read(&file, 0, 30_000)?.0;
        same(data.iter().filter(|byte| **byte == 7).count() as u64, end)?;
        same(data.len(), 20_000)?;
    }
    Ok(())
}

fn a_size_changes_the_mtime(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    f.set(&file, &times(LONG_AGO, LONG_AGO))?;
    f.set(&file, &size(1))?;
    ensure(f.attr(&file)?.mtime > LONG_AGO, "the mtime changed")
}

fn a_directory_has_no_size_to_set(f: &Fixture<'_>) -> Check {
    fails(f.set(&f.top, &size(0)), &[Status::IsDir, Status::Inval])
}

fn a_link_has_no_size_to_set(f: &Fixture<'_>) -> Check {
    let link = f.symlink("l", b"a")?;
    fails(f.set(&link, &size(0)), &[Status::Inval, Status::SymLink])?;
    same(f.attr(&link)?.size, 1)
}

fn a_size_that_is_too_big_is_refused(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    for end in [1 << 63, u64::MAX] {
        fails(f.set(&file, &size(end)), &[Status::FBig, Status::Inval])?;
    }
    same(f.attr(&file)?.size, 3)
}

fn several_attributes_at_once(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    let set = SetAttr { mode: mode(0o600).mode, size: Some(1), ..times(LONG_AGO, LATER) };
    f.set(&file, &set)?;
    let attr = f.attr(&file)?;
    same((attr.mode.bits(), attr.size), (0o600, 1))?;
    same((attr.atime, attr.mtime), (LONG_AGO, LATER))
}

fn sizes_around_four_gigabytes(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    for end in [(1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 40] {
        f.set(&file, &size(end))?;
        same(f.attr(&file)?.size, end)?;
        same(f.read(&file, end - 1, 10)?, (vec![0], true))?;
    }
    Ok(())
}

fn a_directorys_mode_and_times(f: &Fixture<'_>) -> Check {
    let dir = f.dir("d")?;
    f.set(&dir, &SetAttr { mode: mode(0o711).mode, ..times(LONG_AGO, LATER) })?;
    let attr = f.attr(&dir)?;
    same((attr.mode.bits(), attr.mtime), (0o711, LATER))?;
    f.file_in(&dir, "a")?;
    ensure(f.attr(&dir)?.mtime > LATER, "a new entry changes the mtime")
}

fn reading_does_not_change_the_ctime(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    let before = f.attr(&file)?;
    tick();
    f.read(&file, 0, 3)?;
    let after = f.attr(&file)?;
    same((after.ctime, after.mtime), (before.ctime, before.mtime))
}

fn the_ctime_cannot_be_set(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let made = f.attr(&file)?.ctime;
    f.set(&file, &times(LONG_AGO, LONG_AGO))?;
    ensure(f.attr(&file)?.ctime >= made, "the ctime is the time of the change")
}

fn ids_are_set(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.set(&file, &super::fixture::ids(Some(7), None))?;
    f.set(&file, &super::fixture::ids(None, Some(8)))?;
    let attr = f.attr(&file)?;
    same((attr.uid.number(), attr.gid.number()), (7, 8))
}

fn all_ids_of_32_bits(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    for id in [65_534, 65_535, 65_536, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe] {
        f.set(&file, &super::fixture::ids(Some(id), Some(id)))?;
        let attr = f.attr(&file)?;
        same((attr.uid.number(), attr.gid.number()), (id, id))?;
    }
    Ok(())
}

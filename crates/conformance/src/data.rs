use comity_vfs::Status;

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{Fixture, bob, mode, size, tick, times};

super::topic! { "data"
    Needs::NONE => written_data_is_read, a_read_behind_the_end_is_empty,
        a_read_over_the_end_is_cut,
        eof_is_said_exactly_at_the_end, a_write_behind_the_end_leaves_zeros,
        a_write_in_the_middle_keeps_the_rest, an_empty_write_changes_nothing,
        an_empty_read, a_megabyte_at_odd_offsets, offsets_around_four_gigabytes,
        the_largest_offsets, a_write_at_the_largest_offset_is_fbig, a_directory_has_no_data,
        a_write_changes_the_mtime, commit_tells_the_attributes, commit_works_on_directories,
        changes_of_a_removed_object_are_stable_too,
        statfs_is_sane, a_hole_takes_little_space, a_write_tells_the_new_size,
        a_read_tells_the_attributes, a_read_under_an_open_is_like_any_other,
        a_write_under_an_open_is_like_any_other,
        overlapping_writes_leave_the_last;
}

/// Bytes that differ from offset to offset.
fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mix =
        |place: u64| (place.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (0..length as u64).map(mix).collect()
}

fn written_data_is_read(f: &Fixture<'_>) -> Check {
    let data = pattern(10_000, 1);
    let file = f.filled("a", &data)?;
    same(f.attr(&file)?.size, 10_000)?;
    same(f.read(&file, 0, 20_000)?, (data.clone(), true))?;
    same(&f.read(&file, 4_090, 100)?.0[..], &data[4_090..4_190])
}

fn a_read_behind_the_end_is_empty(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    for offset in [3, 4, 4096, 1 << 40, i64::MAX as u64 - 10] {
        same(f.read(&file, offset, 10)?, (vec![], true))?;
    }
    Ok(())
}

fn a_read_over_the_end_is_cut(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    same(f.read(&file, 1, 10)?, (b"bc".to_vec(), true))?;
    same(f.read(&file, 0, u32::MAX >> 4)?, (b"abc".to_vec(), true))
}

fn eof_is_said_exactly_at_the_end(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", &[1; 8192])?;
    same(f.read(&file, 0, 8191)?.1, false)?;
    same(f.read(&file, 0, 8192)?.1, true)?;
    same(f.read(&file, 4096, 4095)?.1, false)?;
    same(f.read(&file, 4096, 4096)?.1, true)
}

fn a_write_behind_the_end_leaves_zeros(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    f.write(&file, 10_000, b"def")?;
    let data = f.read(&file, 0, 20_000)?.0;
    same(data.len(), 10_003)?;
    ensure(data[3..10_000].iter().all(|byte| *byte == 0), "the gap reads as zeros")?;
    same(&data[10_000..], b"def")
}

fn a_write_in_the_middle_keeps_the_rest(f: &Fixture<'_>) -> Check {
    let mut data = pattern(12_288, 2);
    let file = f.filled("a", &data)?;
    f.write(&file, 4_000, &[9; 200])?;
    data[4_000..4_200].fill(9);
    same(f.read(&file, 0, 20_000)?, (data, true))
}

fn an_empty_write_changes_nothing(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    same(f.fs.write(&f.owner, &file, 100, b"")?.value, 0)?;
    same(f.attr(&file)?.size, 3)
}

fn an_empty_read(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    same(f.read(&file, 0, 0)?, (vec![], false))?;
    same(f.read(&file, 3, 0)?, (vec![], true))
}

fn a_megabyte_at_odd_offsets(f: &Fixture<'_>) -> Check {
    let data = pattern(1 << 20, 3);
    let file = f.file("a")?;
    f.write(&file, 12_345, &data)?;
    same(f.attr(&file)?.size, 12_345 + (1 << 20))?;
    let mut found = Vec::new();
    while found.len() < data.len() {
        let (bytes, _) = f.read(&file, 12_345 + found.len() as u64, 1 << 20)?;
        ensure(!bytes.is_empty(), "the read gets on")?;
        found.extend(bytes);
    }
    ensure(found == data, "the data is as written")
}

fn offsets_around_four_gigabytes(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    for edge in [1_u64 << 31, 1 << 32, 1 << 33] {
        f.write(&file, edge - 3, b"abcdef")?;
        same(f.attr(&file)?.size, edge + 3)?;
        same(f.read(&file, edge - 4, 10)?, (b"\0abcdef".to_vec(), true))?;
    }
    same(f.read(&file, (1 << 31) - 3, 7)?.0, b"abcdef\0".to_vec())
}

fn the_largest_offsets(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let max = f.fs.properties(&file)?.file_size_max;
    for offset in [max, max - 1, u64::MAX, u64::MAX - 1, 1 << 63] {
        match f.read(&file, offset, 10) {
            Ok(read) => same(read, (vec![], true))?,
            failed => fails(failed, &[Status::Inval, Status::FBig])?,
        }
    }
    Ok(())
}

fn a_write_at_the_largest_offset_is_fbig(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let refused = [Status::FBig, Status::Inval];
    for offset in [i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX] {
        fails(f.fs.write(&f.owner, &file, offset, b"abc"), &refused)?;
    }
    same(f.attr(&file)?.size, 0)
}

fn a_directory_has_no_data(f: &Fixture<'_>) -> Check {
    fails(f.read(&f.top, 0, 10), &[Status::IsDir])?;
    fails(f.fs.write(&f.owner, &f.top, 0, b"abc"), &[Status::IsDir])
}

fn a_write_changes_the_mtime(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let old = comity_vfs::Time { seconds: 1_000, nanoseconds: 0 };
    f.set(&file, &times(old, old))?;
    let before = f.attr(&file)?;
    tick();
    f.write(&file, 0, b"abc")?;
    let after = f.attr(&file)?;
    ensure(after.mtime > before.mtime && after.ctime > before.ctime, "mtime and ctime grew")?;
    same(after.atime, before.atime)
}

fn commit_tells_the_attributes(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    let told = f.fs.commit(&file)?.map(|attr| (attr.size, attr.fileid));
    same(told, Some((3, f.attr(&file)?.fileid)))
}

fn changes_of_a_removed_object_are_stable_too(f: &Fixture<'_>) -> Check {
    let (file, dir) = (f.filled("a", b"abc")?, f.dir("d")?);
    f.remove("a")?;
    f.rmdir("d")?;
    ensure(f.fs.commit(&file)?.is_none(), "a file is gone")?;
    ensure(f.fs.commit(&dir)?.is_none(), "a directory is gone")
}

fn commit_works_on_directories(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    same(f.fs.commit(&f.top)?.map(|attr| attr.fileid), Some(f.attr(&f.top)?.fileid))
}

fn statfs_is_sane(f: &Fixture<'_>) -> Check {
    let space = f.fs.statfs(&f.owner, &f.top)?;
    ensure(space.bytes_total > 0, "it has a size")?;
    ensure(space.bytes_free <= space.bytes_total, "no more is free than there is")?;
    ensure(space.bytes_available <= space.bytes_free, "no more is available than is free")?;
    ensure(space.files_free <= space.files_total, "no more objects are free than there are")?;
    ensure(space.files_available <= space.files_free, "no more are available than are free")
}

fn a_hole_takes_little_space(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.set(&file, &size(1 << 40))?;
    ensure(f.attr(&file)?.used < 1 << 20, "a terabyte of nothing is nearly nothing")?;
    f.write(&file, 1 << 39, &[1; 4096])?;
    f.fs.commit(&file)?;
    let used = f.attr(&file)?.used;
    ensure((4096..1 << 20).contains(&used), "a page in it is counted")
}

fn a_write_tells_the_new_size(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let written = f.fs.write(&f.owner, &file, 10, b"abc")?;
    same(written.value, 3)?;
    ensure(written.change.after.is_none_or(|attr| attr.size == 13), "the change tells the size")
}

fn a_read_tells_the_attributes(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"abc")?;
    let mut bytes = Vec::new();
    let mut into = comity_vfs::ReadInto::new(&mut bytes);
    let read = f.fs.read(&f.owner, &file, 0, 10, &mut into)?;
    let told = read.attr.map(|attr| (attr.size, attr.fileid));
    same(told, Some((3, f.attr(&file)?.fileid)))
}

fn a_read_under_an_open_is_like_any_other(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", &pattern(10_000, 5))?;
    f.set(&file, &mode(0o600))?;
    // Read twice: the file system may open the file at the first read, and use another path then.
    for _ in 0..2 {
        for offset in [0, 1, 4096, 9_999, 10_000, 10_001, u64::MAX] {
            for count in [0, 1, 4096, 8_192, 10_000, 10_001] {
                same(f.read_opened(&file, offset, count), f.read(&file, offset, count))?;
            }
        }
    }
    f.write(&file, 10_000, b"more")?;
    same(f.read_opened(&file, 9_999, 4_096)?.0.len(), 5)?;
    f.set(&file, &size(10))?;
    same(f.read_opened(&file, 0, 4_096)?, (pattern(10_000, 5)[..10].to_vec(), true))?;
    same(f.read_opened(&f.dir("d")?, 0, 1), Err(Status::IsDir))
}

fn a_write_under_an_open_is_like_any_other(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"some data")?;
    f.set(&file, &mode(0o600))?;
    let write = |node, offset, data: &[u8]| f.fs.write_opened(&bob(), node, offset, data);
    same(write(&file, 5, b"bytes and more")?, 14)?;
    same(write(&file, 0, b"")?, 0)?;
    same(f.read(&file, 0, 99)?, (b"some bytes and more".to_vec(), true))?;
    same(f.attr(&file)?.size, 19)?;
    same(write(&file, u64::MAX, b"x"), Err(Status::FBig))?;
    same(write(&f.dir("d")?, 0, b"x"), Err(Status::IsDir))
}

fn overlapping_writes_leave_the_last(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let mut model = vec![0; 16_384];
    for step in 0..64_usize {
        let at = step * 2_654_435_761 % 12_000;
        let length = 1 + step * 40_503 % 4_000;
        let data = pattern(length, step as u64);
        f.write(&file, at as u64, &data)?;
        model[at..at + length].copy_from_slice(&data);
    }
    let length = f.attr(&file)?.size as usize;
    ensure(f.read(&file, 0, 20_000)?.0 == model[..length], "the file is the sum of its writes")
}

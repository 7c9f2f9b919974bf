use comity_vfs::{Handle, Result, Seek, Status};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{Fixture, size};

super::topic! { "space"
    Needs::SEEK => data_and_holes_are_told_apart, there_is_a_hole_at_the_end,
        behind_the_end_is_nodata,
        a_directory_has_neither;
    Needs::ALLOCATE => allocation_extends_with_zeros, allocation_keeps_data,
        allocation_of_nothing_is_inval,
        allocation_takes_space, allocation_beyond_all_bounds;
    Needs::DEALLOCATE => a_punched_range_reads_as_zeros, punching_keeps_the_size,
        punching_behind_the_end_changes_nothing, punching_gives_space_back;
    Needs::SEEK.and(Needs::DEALLOCATE) => a_punched_range_is_a_hole;
    Needs::COPY => a_copy_has_the_same_bytes, a_copy_stops_at_the_end, a_copy_within_one_file,
        a_copy_over_itself_is_inval, a_copy_extends_its_target, directories_cannot_be_copied;
    Needs::COPY.and(Needs::SEEK) => a_copied_hole_reads_as_zeros;
}

/// The unit of the cases in bytes, a multiple of every file system's block size.
const GRAIN: u64 = 1 << 16;

/// Makes a file of five grains, with data in the second and the fourth.
fn holey(f: &Fixture<'_>) -> Result<Handle> {
    let file = f.file("a")?;
    f.set(&file, &size(5 * GRAIN))?;
    for at in [GRAIN, 3 * GRAIN] {
        f.write(&file, at, &[7; GRAIN as usize])?;
    }
    f.fs.commit(&file)?;
    Ok(file)
}

fn data_and_holes_are_told_apart(f: &Fixture<'_>) -> Check {
    let file = holey(f)?;
    let seek = |offset, what| f.fs.seek(&f.owner, &file, offset, what);
    same(seek(0, Seek::Data)?, GRAIN)?;
    same(seek(GRAIN, Seek::Data)?, GRAIN)?;
    same(seek(GRAIN + 5, Seek::Data)?, GRAIN + 5)?;
    same(seek(GRAIN, Seek::Hole)?, 2 * GRAIN)?;
    same(seek(0, Seek::Hole)?, 0)?;
    same(seek(2 * GRAIN, Seek::Data)?, 3 * GRAIN)?;
    fails(seek(4 * GRAIN, Seek::Data), &[Status::NoData])
}

fn there_is_a_hole_at_the_end(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    same(f.fs.seek(&f.owner, &file, 0, Seek::Hole)?, 4)?;
    same(f.fs.seek(&f.owner, &file, 0, Seek::Data)?, 0)
}

fn behind_the_end_is_nodata(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    for offset in [4, 5, 1 << 40] {
        for what in [Seek::Data, Seek::Hole] {
            fails(f.fs.seek(&f.owner, &file, offset, what), &[Status::NoData])?;
        }
    }
    Ok(())
}

fn a_directory_has_neither(f: &Fixture<'_>) -> Check {
    fails(f.fs.seek(&f.owner, &f.top, 0, Seek::Data), &[Status::IsDir, Status::Inval])
}

fn allocation_extends_with_zeros(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    f.fs.allocate(&f.owner, &file, 100, 100)?;
    same(f.attr(&file)?.size, 200)?;
    let data = f.read(&file, 0, 300)?.0;
    ensure(data.len() == 200 && data[4..].iter().all(|byte| *byte == 0), "zeros follow")
}

fn allocation_keeps_data(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", &[7; 10_000])?;
    f.fs.allocate(&f.owner, &file, 0, 9_000)?;
    same(f.read(&file, 0, 20_000)?, (vec![7; 10_000], true))
}

fn allocation_of_nothing_is_inval(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    fails(f.fs.allocate(&f.owner, &file, 0, 0), &[Status::Inval])
}

fn allocation_takes_space(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    f.fs.allocate(&f.owner, &file, 0, 4 * GRAIN)?;
    ensure(f.attr(&file)?.used >= 4 * GRAIN, "the space is taken")
}

fn allocation_beyond_all_bounds(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let refused = [Status::FBig, Status::NoSpc, Status::Inval];
    for (offset, length) in [(u64::MAX, 1), (1, u64::MAX), (1 << 63, 1), (0, 1 << 62)] {
        fails(f.fs.allocate(&f.owner, &file, offset, length), &refused)?;
    }
    same(f.attr(&file)?.size, 0)
}

fn a_punched_range_reads_as_zeros(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", &[7; 20_000])?;
    f.fs.deallocate(&f.owner, &file, 5_000, 10_000)?;
    let data = f.read(&file, 0, 30_000)?.0;
    same(data.len(), 20_000)?;
    let is_hole = |place: usize| (5_000..15_000).contains(&place);
    let right = data.iter().enumerate().all(|(place, byte)| (*byte == 0) == is_hole(place));
    ensure(right, "zeros exactly where it was punched")
}

fn punching_keeps_the_size(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", &[7; 10_000])?;
    f.fs.deallocate(&f.owner, &file, 5_000, 100_000)?;
    same(f.attr(&file)?.size, 10_000)
}

fn punching_behind_the_end_changes_nothing(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    f.fs.deallocate(&f.owner, &file, 1 << 20, 1 << 20)?;
    same(f.read(&file, 0, 9)?, (b"data".to_vec(), true))
}

fn punching_gives_space_back(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", &[7; 4 * GRAIN as usize])?;
    f.fs.commit(&file)?;
    let before = f.attr(&file)?.used;
    f.fs.deallocate(&f.owner, &file, GRAIN, 2 * GRAIN)?;
    f.fs.commit(&file)?;
    ensure(f.attr(&file)?.used < before, "space is given back")
}

fn a_punched_range_is_a_hole(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", &[7; 4 * GRAIN as usize])?;
    f.fs.commit(&file)?;
    f.fs.deallocate(&f.owner, &file, GRAIN, GRAIN)?;
    same(f.fs.seek(&f.owner, &file, 0, Seek::Hole)?, GRAIN)?;
    same(f.fs.seek(&f.owner, &file, GRAIN, Seek::Data)?, 2 * GRAIN)
}

/// Copies until nothing is left; returns the number of bytes.
fn copy_all(
    f: &Fixture<'_>,
    (source, from): (&Handle, u64),
    (target, to): (&Handle, u64),
    length: u64,
) -> Result<u64> {
    let mut done = 0;
    while done < length {
        let (source, target) = ((source, from + done), (target, to + done));
        match f.fs.copy(&f.owner, source, target, length - done)?.value {
            0 => break,
            copied => done += copied,
        }
    }
    Ok(done)
}

fn a_copy_has_the_same_bytes(f: &Fixture<'_>) -> Check {
    let data: Vec<u8> = (0..3_000_000_u32).map(|place| (place % 251) as u8).collect();
    let (source, target) = (f.filled("a", &data)?, f.file("b")?);
    same(copy_all(f, (&source, 1_000), (&target, 10), 2_900_000)?, 2_900_000)?;
    same(f.attr(&target)?.size, 2_900_010)?;
    for at in (0..2_900_000).step_by(100_000) {
        let copied = f.read(&target, 10 + at as u64, 100_000)?.0;
        ensure(copied[..] == data[1_000 + at..][..copied.len()], "the bytes are the same")?;
    }
    Ok(())
}

fn a_copy_stops_at_the_end(f: &Fixture<'_>) -> Check {
    let (source, target) = (f.filled("a", b"data")?, f.file("b")?);
    same(copy_all(f, (&source, 1), (&target, 0), 100)?, 3)?;
    same(f.read(&target, 0, 9)?, (b"ata".to_vec(), true))
}

fn a_copy_within_one_file(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    same(copy_all(f, (&file, 0), (&file, 4), 4)?, 4)?;
    same(f.read(&file, 0, 9)?, (b"datadata".to_vec(), true))
}

fn a_copy_over_itself_is_inval(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    fails(f.fs.copy(&f.owner, (&file, 0), (&file, 2), 4), &[Status::Inval])?;
    same(f.read(&file, 0, 9)?, (b"data".to_vec(), true))
}

fn a_copy_extends_its_target(f: &Fixture<'_>) -> Check {
    let (source, target) = (f.filled("a", b"data")?, f.filled("b", b"x")?);
    same(copy_all(f, (&source, 0), (&target, 5), 4)?, 4)?;
    same(f.read(&target, 0, 20)?, (b"x\0\0\0\0data".to_vec(), true))
}

fn directories_cannot_be_copied(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    let refused = [Status::IsDir, Status::Inval];
    fails(f.fs.copy(&f.owner, (&f.top, 0), (&file, 0), 4), &refused)?;
    fails(f.fs.copy(&f.owner, (&file, 0), (&f.top, 0), 4), &refused)
}

fn a_copied_hole_reads_as_zeros(f: &Fixture<'_>) -> Check {
    let source = holey(f)?;
    let target = f.filled("b", &[9; 5 * GRAIN as usize])?;
    same(copy_all(f, (&source, 0), (&target, 0), 5 * GRAIN)?, 5 * GRAIN)?;
    for grain in 0..5 {
        let data = f.read(&target, grain * GRAIN, GRAIN as u32)?.0;
        let wanted = if grain % 2 == 1 { 7 } else { 0 };
        ensure(data.iter().all(|byte| *byte == wanted), "data and zeros alternate")?;
    }
    Ok(())
}

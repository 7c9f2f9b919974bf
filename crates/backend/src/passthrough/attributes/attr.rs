use comity_vfs::{Attr, Device, Disk, FileType, Gid, Mode, Time, Uid};
use rustix::fs::{RawMode, Stat};

use crate::passthrough::mounts::mount::Mount;

/// Converts the result of `stat` for an object of `mount`.
#[inline]
pub(crate) fn attr(mount: &Mount, stat: &Stat) -> Attr<Disk> {
    Attr {
        file_type: file_type(stat.st_mode),
        mode: Mode::new(stat.st_mode),
        links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        uid: Uid::new(stat.st_uid),
        gid: Gid::new(stat.st_gid),
        size: stat.st_size as u64,
        used: (stat.st_blocks as u64).saturating_mul(512),
        device: device(stat),
        fsid: fsid(mount, stat),
        fileid: stat.st_ino,
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: ctime(stat),
        change: ctime(stat).change(),
    }
}

/// Returns the time of the last change of the object's data or attributes.
pub(crate) fn ctime(stat: &Stat) -> Time {
    time(stat.st_ctime, stat.st_ctime_nsec)
}

/// Returns the type of object in a mode.
pub(crate) fn file_type(mode: RawMode) -> FileType {
    use rustix::fs::FileType as Kind;
    match Kind::from_raw_mode(mode) {
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::BlockDevice => FileType::Block,
        Kind::CharacterDevice => FileType::Character,
        Kind::Fifo => FileType::Fifo,
        Kind::Socket => FileType::Socket,
        _ => FileType::Regular,
    }
}

fn device(stat: &Stat) -> Device {
    match file_type(stat.st_mode) {
        FileType::Block | FileType::Character => Device {
            major: rustix::fs::major(stat.st_rdev),
            minor: rustix::fs::minor(stat.st_rdev),
        },
        _ => Device::default(),
    }
}

/// Returns the fsid of an object. Subvolumes of one btrfs number their files separately, and each
/// has its own device number.
fn fsid(mount: &Mount, stat: &Stat) -> u64 {
    if stat.st_dev == mount.device { mount.fsid } else { mount.fsid ^ stat.st_dev }
}

fn time(seconds: i64, nanoseconds: u64) -> Time {
    Time { seconds, nanoseconds: nanoseconds as u32 }
}

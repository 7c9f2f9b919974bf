//! Conversions between values of `fuser` and of this crate.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use comity_vfs::{Device, FileType, SetTime, Time};
use fuser::{FileAttr, Generation, INodeNo, Request, TimeOrNow};
use rustix::io::Errno;

use crate::callers::Requester;
use crate::mounted::KnownNode;

/// The preferred size for reads in stat(2). It does not affect the kernel's read-ahead.
const BLOCK_BYTES: u32 = 4096;

/// The unit of `st_blocks` in stat(2).
const SECTOR_BYTES: u64 = 512;

pub(super) fn requester(request: &Request) -> Requester {
    Requester { pid: request.pid(), uid: request.uid(), gid: request.gid() }
}

pub(super) fn error(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

pub(super) fn file_attr(known: &KnownNode, inode: u64) -> FileAttr {
    let attr = &known.attr;
    FileAttr {
        ino: INodeNo(inode),
        size: attr.size,
        blocks: attr.used.div_ceil(SECTOR_BYTES),
        atime: system_time(attr.atime),
        mtime: system_time(attr.mtime),
        ctime: system_time(attr.ctime),
        crtime: UNIX_EPOCH,
        kind: kind(attr.file_type),
        perm: attr.mode.bits() as u16,
        nlink: attr.links,
        uid: attr.uid.number(),
        gid: attr.gid.number(),
        rdev: device_number(attr.device),
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

/// The generation tells objects apart that have the same number one after the other, and makes
/// guessed file handles invalid: name_to_handle_at(2) includes it.
pub(super) const fn generation(known: &KnownNode) -> Generation {
    Generation(known.generation as u64)
}

pub(super) const fn kind(file_type: FileType) -> fuser::FileType {
    match file_type {
        FileType::Regular => fuser::FileType::RegularFile,
        FileType::Directory => fuser::FileType::Directory,
        FileType::Symlink => fuser::FileType::Symlink,
        FileType::Block => fuser::FileType::BlockDevice,
        FileType::Character => fuser::FileType::CharDevice,
        FileType::Fifo => fuser::FileType::NamedPipe,
        FileType::Socket => fuser::FileType::Socket,
    }
}

/// Encodes a device number for the kernel (`new_decode_dev` in Linux).
const fn device_number(device: Device) -> u32 {
    let Device { major, minor } = device;
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// Converts a time. One that the system's type cannot represent becomes the epoch.
fn system_time(time: Time) -> SystemTime {
    let nanoseconds = Duration::from_nanos(time.nanoseconds.into());
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let base = match time.seconds {
        0.. => UNIX_EPOCH.checked_add(whole),
        _ => UNIX_EPOCH.checked_sub(whole),
    };
    base.and_then(|base| base.checked_add(nanoseconds)).unwrap_or(UNIX_EPOCH)
}

/// Converts a time to set. For times before 1970, `fuser` 0.18.0 subtracts the nanoseconds instead
/// of adding them (`system_time_from_time`); this undoes that error.
pub(super) fn set_time(time: TimeOrNow) -> SetTime {
    let TimeOrNow::SpecificTime(time) = time else { return SetTime::Now };
    let (sign, distance) = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (1, since),
        Err(before) => (-1, before.duration()),
    };
    let seconds = (distance.as_secs() as i64).wrapping_mul(sign);
    SetTime::To(Time { seconds, nanoseconds: distance.subsec_nanos() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_told_and_set() {
        let half = Duration::from_millis(500);
        let told = system_time(Time { seconds: -2, nanoseconds: 500_000_000 });
        assert_eq!(told, UNIX_EPOCH - Duration::from_secs(1) - half);
        let wrong = UNIX_EPOCH - Duration::from_secs(2) - half;
        let set = SetTime::To(Time { seconds: -2, nanoseconds: 500_000_000 });
        assert_eq!(set_time(TimeOrNow::SpecificTime(wrong)), set);
        let later = UNIX_EPOCH + Duration::from_secs(2) + half;
        let set = SetTime::To(Time { seconds: 2, nanoseconds: 500_000_000 });
        assert_eq!(set_time(TimeOrNow::SpecificTime(later)), set);
    }

    #[test]
    fn device_numbers_are_those_of_the_kernel() {
        assert_eq!(device_number(Device { major: 1, minor: 3 }), 0x103);
        assert_eq!(device_number(Device { major: 0xfff, minor: 0xf_ffff }), u32::MAX);
    }
}

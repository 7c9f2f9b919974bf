//! Conversions of attributes between NFSv3 and `vfs` (RFC 1813, 2.6).

use comity_proto::nfs3::{
    Fattr3, Ftype3, Nfstime3, PostOpAttr, Sattr3, SetTime3, Specdata3, WccData,
};
use comity_vfs::{Attr, Change, Device, Disk, FileType, Gid, Mode, SetAttr, SetTime, Time, Uid};

/// The attributes of an object. Version 3 has no change attribute, so the ctime is used.
pub(super) const fn attr(fattr: &Fattr3) -> Attr<Disk> {
    let ctime = time(fattr.ctime);
    Attr {
        file_type: file_type(fattr.ftype),
        mode: Mode::new(fattr.mode),
        links: fattr.nlink,
        uid: Uid::new(fattr.uid),
        gid: Gid::new(fattr.gid),
        size: fattr.size,
        used: fattr.used,
        device: Device { major: fattr.rdev.major, minor: fattr.rdev.minor },
        fsid: fattr.fsid,
        fileid: fattr.fileid,
        atime: time(fattr.atime),
        mtime: time(fattr.mtime),
        ctime,
        change: ctime.change(),
    }
}

/// The attributes after an operation, if the server sent them.
pub(super) fn attr_after(told: &PostOpAttr) -> Option<Attr<Disk>> {
    told.as_ref().map(attr)
}

/// The change of an object. Of the attributes before it, the server sends only size, mtime and
/// ctime, which show whether others have changed the object; the rest is copied from the attributes
/// after it.
pub(super) fn change(wcc: &WccData) -> Change<Disk> {
    let after = attr_after(&wcc.after);
    let before = after.zip(wcc.before).map(|(after, before)| {
        let ctime = time(before.ctime);
        let (size, mtime) = (before.size, time(before.mtime));
        Attr { size, mtime, ctime, change: ctime.change(), ..after }
    });
    Change { before, after }
}

/// The arguments of SETATTR.
pub(super) fn sattr3(set: &SetAttr<Disk>) -> Sattr3 {
    Sattr3 {
        mode: set.mode.map(Mode::bits),
        uid: set.uid.map(Uid::number),
        gid: set.gid.map(Gid::number),
        size: set.size,
        atime: set_time3(set.atime),
        mtime: set_time3(set.mtime),
    }
}

const fn set_time3(wanted: Option<SetTime>) -> SetTime3 {
    match wanted {
        None => SetTime3::DontChange,
        Some(SetTime::Now) => SetTime3::SetToServerTime,
        Some(SetTime::To(time)) => SetTime3::SetToClientTime(nfstime3(time)),
    }
}

/// A time on the wire, whose seconds are unsigned and of 32 bits. A time out of range becomes the
/// nearest that can be sent, as with Linux.
pub(super) const fn nfstime3(time: Time) -> Nfstime3 {
    const LAST: i64 = u32::MAX as i64;
    match time.seconds {
        ..0 => Nfstime3 { seconds: 0, nseconds: 0 },
        seconds @ 0..=LAST => Nfstime3 { seconds: seconds as u32, nseconds: time.nanoseconds },
        _ => Nfstime3 { seconds: u32::MAX, nseconds: 999_999_999 },
    }
}

/// A time that the server sent.
pub(super) const fn time(found: Nfstime3) -> Time {
    Time { seconds: found.seconds as i64, nanoseconds: found.nseconds }
}

/// Device numbers on the wire.
pub(super) const fn specdata3(device: Device) -> Specdata3 {
    Specdata3 { major: device.major, minor: device.minor }
}

const fn file_type(found: Ftype3) -> FileType {
    match found {
        Ftype3::Reg => FileType::Regular,
        Ftype3::Dir => FileType::Directory,
        Ftype3::Blk => FileType::Block,
        Ftype3::Chr => FileType::Character,
        Ftype3::Lnk => FileType::Symlink,
        Ftype3::Sock => FileType::Socket,
        Ftype3::Fifo => FileType::Fifo,
    }
}

#[cfg(test)]
mod tests {
    use comity_proto::nfs3::WccAttr;

    use super::*;

    fn fattr(ctime: u32) -> Fattr3 {
        let time = |seconds| Nfstime3 { seconds, nseconds: 5 };
        Fattr3 {
            ftype: Ftype3::Reg,
            mode: 0o100_644,
            nlink: 1,
            uid: 7,
            gid: 8,
            size: 9,
            used: 4096,
            rdev: Specdata3::default(),
            fsid: 1,
            fileid: 2,
            atime: time(1),
            mtime: time(2),
            ctime: time(ctime),
        }
    }

    #[test]
    fn the_attributes_before_a_change_come_from_the_reply() {
        let ctime = Nfstime3 { seconds: 3, nseconds: 5 };
        let before = Some(WccAttr { size: 1, mtime: ctime, ctime });
        let told = change(&WccData { before, after: Some(fattr(4)) });
        let (before, after) = (told.before.unwrap(), told.after.unwrap());
        assert_eq!((before.size, before.change), (1, time(ctime).change()));
        assert_eq!((after.size, before.uid), (9, after.uid));
        assert_ne!(before.change, after.change);
        let unknown = change(&WccData { before: None, after: Some(fattr(4)) });
        assert_eq!((unknown.before, unknown.after), (None, Some(after)));
    }

    #[test]
    fn a_time_out_of_range_becomes_the_nearest_one() {
        let said = |seconds| nfstime3(Time { seconds, nanoseconds: 7 }).seconds;
        assert_eq!((said(-1), said(5), said(1 << 32)), (0, 5, u32::MAX));
    }
}

use comity_export::{Node, View};
use comity_proto::nfs3::{Fattr3, Ftype3, PostOpAttr, Specdata3, WccAttr, WccData};
use comity_vfs::{Attr, Change, FileType, Wire};

use crate::time::nfstime3;

/// Returns attributes in the form of NFSv3 (RFC 1813, 2.5).
#[inline]
pub(crate) fn fattr3(attr: &Attr<Wire>) -> Fattr3 {
    Fattr3 {
        ftype: ftype3(attr.file_type),
        mode: attr.mode.bits(),
        nlink: attr.links,
        uid: attr.uid.number(),
        gid: attr.gid.number(),
        size: attr.size,
        used: attr.used,
        rdev: Specdata3 { major: attr.device.major, minor: attr.device.minor },
        fsid: attr.fsid,
        fileid: attr.fileid,
        atime: nfstime3(attr.atime),
        mtime: nfstime3(attr.mtime),
        ctime: nfstime3(attr.ctime),
    }
}

/// Returns the attributes of an object as they are now, for a failed reply.
pub(crate) fn attributes_now(view: &View<'_>, node: &Node) -> PostOpAttr {
    view.getattr(node).ok().map(|attr| fattr3(&attr))
}

/// A change as weak cache consistency data (RFC 1813, 2.6).
pub(crate) fn wcc_data(change: &Change<Wire>) -> WccData {
    WccData {
        before: change.before.as_ref().map(wcc_attr),
        after: change.after.as_ref().map(fattr3),
    }
}

/// Returns the attributes of an object whose change was refused, as weak cache consistency data
/// without a part before: they were not read before the operation.
pub(crate) fn wcc_now(view: &View<'_>, node: &Node) -> WccData {
    WccData { before: None, after: attributes_now(view, node) }
}

fn wcc_attr(attr: &Attr<Wire>) -> WccAttr {
    let (mtime, ctime) = (nfstime3(attr.mtime), nfstime3(attr.ctime));
    WccAttr { size: attr.size, mtime, ctime }
}

const fn ftype3(file_type: FileType) -> Ftype3 {
    match file_type {
        FileType::Regular => Ftype3::Reg,
        FileType::Directory => Ftype3::Dir,
        FileType::Symlink => Ftype3::Lnk,
        FileType::Block => Ftype3::Blk,
        FileType::Character => Ftype3::Chr,
        FileType::Fifo => Ftype3::Fifo,
        FileType::Socket => Ftype3::Sock,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_vfs::{Device, Gid, Mode, Time, Uid};
    use comity_xdr::Encoder;

    /// The bytes are laid out by hand after RFC 1813, 2.5; each field has bytes of its own.
    #[test]
    fn fattr3_is_laid_out_as_the_rfc_has_it() {
        let time = |seconds| Time { seconds, nanoseconds: 9 };
        let attr = Attr {
            file_type: FileType::Character,
            mode: Mode::new(0o6755),
            links: 2,
            uid: Uid::new(0x0000_03e8),
            gid: Gid::new(0xffff_fffe),
            size: 0x0102_0304_0506_0708,
            used: 0x1000,
            device: Device { major: 5, minor: 1 },
            fsid: 0x1111_2222_3333_4444,
            fileid: 0x5555_6666_7777_8888,
            atime: time(1),
            mtime: time(2),
            ctime: time(-3),
            change: 0,
        };
        let mut encoder = Encoder::new();
        encoder.value(&fattr3(&attr));
        let words: [u32; 21] = [
            4,
            0o6755,
            2,
            1000,
            0xffff_fffe, // ftype mode nlink uid gid
            0x0102_0304,
            0x0506_0708,
            0,
            0x1000, // size used
            5,
            1, // rdev
            0x1111_2222,
            0x3333_4444,
            0x5555_6666,
            0x7777_8888, // fsid fileid
            1,
            9,
            2,
            9,
            0,
            0, // atime mtime ctime
        ];
        let expected: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        assert_eq!(encoder.bytes(), expected);
    }
}

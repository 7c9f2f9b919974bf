//! Values of attributes as they are encoded, in replies and in notifications.

use comity_proto::nfs4::{NfsFtype4, Nfstime4};
use comity_vfs::{FileType, Time};

pub(crate) const fn nfstime4(time: Time) -> Nfstime4 {
    Nfstime4 { seconds: time.seconds, nseconds: time.nanoseconds }
}

pub(crate) const fn ftype4(file_type: FileType) -> NfsFtype4 {
    match file_type {
        FileType::Regular => NfsFtype4::Reg,
        FileType::Directory => NfsFtype4::Dir,
        FileType::Symlink => NfsFtype4::Lnk,
        FileType::Block => NfsFtype4::Blk,
        FileType::Character => NfsFtype4::Chr,
        FileType::Fifo => NfsFtype4::Fifo,
        FileType::Socket => NfsFtype4::Sock,
    }
}

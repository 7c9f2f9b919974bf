//! Sends results as replies of `fuser`.

use std::time::{Duration, UNIX_EPOCH};

use fuser::{FileAttr, Generation, INodeNo, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyXattr};
use rustix::io::Errno;

use super::convert::{error, file_attr, generation};
use crate::mounted::{KnownNode, inode_number};

/// Answers with success or an error.
pub(super) fn done(reply: ReplyEmpty, result: rustix::io::Result<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(error(errno)),
    }
}

pub(super) fn entry(reply: ReplyEntry, result: rustix::io::Result<KnownNode>) {
    match result {
        Ok(known) => {
            let attr = file_attr(&known, known.number);
            reply.entry_with_ttls(&known.keep.attr, &known.keep.entry, &attr, generation(&known));
        }
        Err(errno) => reply.error(error(errno)),
    }
}

pub(super) fn attributes(reply: ReplyAttr, result: rustix::io::Result<KnownNode>) {
    match result {
        Ok(known) => reply.attr(&known.keep.attr, &file_attr(&known, inode_number(&known))),
        Err(errno) => reply.error(error(errno)),
    }
}

/// Answers a LOOKUP of a missing name, which the kernel may cache for `keep`.
pub(super) fn missing(reply: ReplyEntry, keep: Duration) {
    let nothing = FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: fuser::FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    };
    reply.entry_with_ttls(&Duration::ZERO, &keep, &nothing, Generation(0));
}

pub(super) fn data(reply: ReplyXattr, size: u32, result: rustix::io::Result<Vec<u8>>) {
    match result {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(error(Errno::RANGE)),
        Ok(value) => reply.data(&value),
        Err(errno) => reply.error(error(errno)),
    }
}

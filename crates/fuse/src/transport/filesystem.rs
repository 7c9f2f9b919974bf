//! Passes each request of the kernel to the function of [`Mounted`] that answers it.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use comity_vfs::{HeldLock, RangeLock};
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, FileHandle, FopenFlags, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLock, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::io::Errno;

use super::convert::{error, file_attr, generation, kind, requester, set_time};
use super::replies::{attributes, data, done, entry, missing};
use crate::limits::{BACKGROUND_MAX, TRANSFER_BYTES_MAX};
use crate::mounted::{
    self, Handed, LockArguments, Looked, Mounted, NewAttributes, NewMode, WriteHow,
};

/// The block size in statfs(2).
const UNIT_BYTES: u64 = 4096;

thread_local! {
    /// The buffer of the thread's current READ, reused by the next one.
    static DATA: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Implements the trait of `fuser` by a [`Mounted`].
pub(super) struct Filesystem(pub(super) Arc<Mounted>);

const fn open_flags(handed: Handed) -> FopenFlags {
    if handed.keeps_pages { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::empty() }
}

/// Converts a lock request. The kernel uses 2^63 - 1 as last byte for the end of the file.
fn lock_arguments(
    (open, owner): (FileHandle, LockOwner),
    (start, end): (u64, u64),
    kind: i32,
) -> rustix::io::Result<LockArguments> {
    let lock = match kind {
        READ_LOCK => RangeLock::Shared,
        WRITE_LOCK => RangeLock::Exclusive,
        UNLOCK => RangeLock::Free,
        _ => return Err(Errno::INVAL),
    };
    let end = if end >= i64::MAX as u64 { u64::MAX } else { end };
    Ok(LockArguments { open: open.0, owner: owner.0, bytes: (start, end), lock })
}

/// The lock types of fcntl(2).
const READ_LOCK: i32 = 0;
const WRITE_LOCK: i32 = 1;
const UNLOCK: i32 = 2;

impl fuser::Filesystem for Filesystem {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut wanted = vec![
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_MAX_PAGES,
            // With this flag the kernel need not request security.capability before each write;
            // instead, WRITE requests say whether set-id bits must be cleared.
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
        ];
        if self.0.open_files().is_some() {
            wanted.extend([InitFlags::FUSE_POSIX_LOCKS, InitFlags::FUSE_FLOCK_LOCKS]);
        }
        if self.0.kernel_judges() {
            // With this flag this crate applies umasks, because a default ACL overrides them.
            wanted.extend([InitFlags::FUSE_POSIX_ACL, InitFlags::FUSE_DONT_MASK]);
        }
        for flag in wanted {
            if let Err(lacking) = config.add_capabilities(flag) {
                tracing::debug!(?lacking, "this kernel lacks a feature of FUSE");
            }
        }
        // If a value is too large, `fuser` keeps the largest allowed one and returns an error.
        let _ = config.set_max_write(TRANSFER_BYTES_MAX);
        let _ = config.set_max_readahead(TRANSFER_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, request: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.0.lookup(requester(request), dir.0, name.as_bytes()) {
            Ok(Looked::Found(known)) => entry(reply, Ok(known)),
            Ok(Looked::Missing(keep)) if keep.is_zero() => reply.error(error(Errno::NOENT)),
            Ok(Looked::Missing(keep)) => missing(reply, keep),
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        self.0.forget(number.0, times);
    }

    fn getattr(&self, request: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        attributes(reply, self.0.getattr(requester(request), number.0));
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        open: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (atime, mtime) = (atime.map(set_time), mtime.map(set_time));
        let new = NewAttributes { mode, uid, gid, size, atime, mtime };
        let open = open.map(|open| open.0);
        attributes(reply, self.0.setattr(requester(request), number.0, open, new));
    }

    fn readlink(&self, request: &Request, number: INodeNo, reply: ReplyData) {
        match self.0.readlink(requester(request), number.0) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let place = (dir.0, name.as_bytes());
        entry(reply, self.0.mknod(requester(request), place, NewMode { mode, umask }, device));
    }

    fn mkdir(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let (place, mode) = ((dir.0, name.as_bytes()), NewMode { mode, umask });
        entry(reply, self.0.mkdir(requester(request), place, mode));
    }

    fn unlink(&self, request: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.0.unlink(requester(request), dir.0, name.as_bytes()));
    }

    fn rmdir(&self, request: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.0.rmdir(requester(request), dir.0, name.as_bytes()));
    }

    fn symlink(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let (place, target) = ((dir.0, name.as_bytes()), target.as_os_str().as_bytes());
        entry(reply, self.0.symlink(requester(request), place, target));
    }

    fn rename(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        new_dir: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (source, target) = ((dir.0, name.as_bytes()), (new_dir.0, new_name.as_bytes()));
        done(reply, self.0.rename(requester(request), source, target, flags.bits()));
    }

    fn link(
        &self,
        request: &Request,
        number: INodeNo,
        dir: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        entry(reply, self.0.link(requester(request), number.0, (dir.0, name.as_bytes())));
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let flags = mounted::OpenFlags(flags.0 as u32);
        match self.0.open(requester(request), number.0, flags) {
            Ok(handed) => reply.opened(FileHandle(handed.open), open_flags(handed)),
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn read(
        &self,
        request: &Request,
        _number: INodeNo,
        open: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        DATA.with_borrow_mut(|bytes| {
            match self.0.read(requester(request), open.0, (offset, size), bytes) {
                Ok(()) => reply.data(bytes),
                Err(errno) => reply.error(error(errno)),
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        _number: INodeNo,
        open: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let clears_set_ids = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let flags = WriteHow { flags: mounted::OpenFlags(flags.0 as u32), clears_set_ids };
        match self.0.write(requester(request), open.0, (offset, data), flags) {
            Ok(count) => reply.written(count),
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn flush(
        &self,
        request: &Request,
        _number: INodeNo,
        open: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        done(reply, self.0.flush(requester(request), open.0, owner.0));
    }

    fn release(
        &self,
        _: &Request,
        _number: INodeNo,
        open: FileHandle,
        _flags: OpenFlags,
        flock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.0.release(open.0, flock_owner.map(|owner| owner.0));
        reply.ok();
    }

    fn fsync(
        &self,
        request: &Request,
        number: INodeNo,
        _open: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        done(reply, self.0.fsync(requester(request), number.0));
    }

    fn opendir(&self, request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.0.opendir(requester(request), number.0) {
            Ok(open) => reply.opened(FileHandle(open), FopenFlags::empty()),
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn readdir(
        &self,
        request: &Request,
        _number: INodeNo,
        open: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.0.readdir(requester(request), open.0, (offset, false), &mut |shown| {
            let kind = shown.file_type.map_or(fuser::FileType::RegularFile, kind);
            let name = OsStr::from_bytes(shown.name);
            full(reply.add(INodeNo(shown.fileid), shown.offset, kind, name))
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn readdirplus(
        &self,
        request: &Request,
        _number: INodeNo,
        open: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let listed = self.0.readdir(requester(request), open.0, (offset, true), &mut |shown| {
            let Some(known) = &shown.known else { return ControlFlow::Continue(()) };
            let (name, number) = (OsStr::from_bytes(shown.name), INodeNo(known.number));
            let keep = known.keep.entry.min(known.keep.attr);
            let attr = file_attr(known, known.number);
            full(reply.add(number, shown.offset, name, &keep, &attr, generation(known)))
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        _number: INodeNo,
        open: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.0.releasedir(open.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        request: &Request,
        number: INodeNo,
        _open: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        done(reply, self.0.fsync(requester(request), number.0));
    }

    fn statfs(&self, request: &Request, number: INodeNo, reply: ReplyStatfs) {
        match self.0.statfs(requester(request), number.0) {
            Ok((space, properties)) => reply.statfs(
                space.bytes_total / UNIT_BYTES,
                space.bytes_free / UNIT_BYTES,
                space.bytes_available / UNIT_BYTES,
                space.files_total,
                space.files_free,
                UNIT_BYTES as u32,
                properties.name_bytes_max,
                UNIT_BYTES as u32,
            ),
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let attribute = (number.0, name.as_bytes());
        done(reply, self.0.setxattr(requester(request), attribute, Some(value), flags as u32));
    }

    fn getxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        data(reply, size, self.0.getxattr(requester(request), number.0, name.as_bytes()));
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        data(reply, size, self.0.listxattr(requester(request), number.0));
    }

    fn removexattr(&self, request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.0.removexattr(requester(request), number.0, name.as_bytes()));
    }

    fn access(&self, request: &Request, number: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        done(reply, self.0.access(requester(request), number.0, mask.bits() as u32));
    }

    fn create(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (place, flags) = ((dir.0, name.as_bytes()), mounted::OpenFlags(flags as u32));
        match self.0.create(requester(request), place, NewMode { mode, umask }, flags) {
            Ok((known, handed)) => {
                let keep = known.keep.entry.min(known.keep.attr);
                let (attr, open) = (file_attr(&known, known.number), FileHandle(handed.open));
                reply.created(&keep, &attr, generation(&known), open, open_flags(handed));
            }
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn getlk(
        &self,
        request: &Request,
        _number: INodeNo,
        open: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        _pid: u32,
        reply: ReplyLock,
    ) {
        let found = lock_arguments((open, owner), (start, end), kind)
            .and_then(|lock| self.0.getlk(requester(request), lock));
        match found {
            Ok(Some(HeldLock { bytes: (first, last), is_exclusive })) => {
                let kind = if is_exclusive { WRITE_LOCK } else { READ_LOCK };
                // The holder may be on another machine, so it has no process id here.
                reply.locked(first, last.min(i64::MAX as u64), kind, 0);
            }
            Ok(None) => reply.locked(start, end, UNLOCK, 0),
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn setlk(
        &self,
        request: &Request,
        _number: INodeNo,
        open: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        _pid: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        match lock_arguments((open, owner), (start, end), kind) {
            Ok(lock) => {
                let reply = Box::new(move |result| done(reply, result));
                self.0.setlk(requester(request), (lock, sleep), reply);
            }
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn fallocate(
        &self,
        request: &Request,
        _number: INodeNo,
        open: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let range = (offset, length);
        done(reply, self.0.fallocate(requester(request), open.0, range, mode as u32));
    }

    fn lseek(
        &self,
        request: &Request,
        _number: INodeNo,
        open: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.0.lseek(requester(request), open.0, offset, whence) {
            Ok(offset) => reply.offset(offset as i64),
            Err(errno) => reply.error(error(errno)),
        }
    }

    fn copy_file_range(
        &self,
        request: &Request,
        _source_number: INodeNo,
        source: FileHandle,
        from: u64,
        _target_number: INodeNo,
        target: FileHandle,
        to: u64,
        length: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        match self.0.copy(requester(request), (source.0, from), (target.0, to), length) {
            Ok(count) => reply.written(count),
            Err(errno) => reply.error(error(errno)),
        }
    }
}

const fn full(full: bool) -> ControlFlow<()> {
    if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

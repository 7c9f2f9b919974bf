//! The system calls that have no safe wrapper in rustix: all of this crate's `unsafe`.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

/// Longest kernel handle in bytes: a [`comity_vfs::Handle`] also has the volume's number and the
/// handle's type. ext4 uses 8 bytes, XFS 12, btrfs 20.
pub(crate) const KERNEL_HANDLE_BYTES_MAX: usize = comity_vfs::limits::HANDLE_BYTES_MAX - 6;

/// The result of a system call, or its error number.
pub(crate) type Result<T> = std::result::Result<T, Errno>;

/// A file as the kernel names it for `open_by_handle_at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KernelHandle {
    pub(crate) kind: i32,
    length: usize,
    /// The handle's bytes, padded with zeros so that copies have a fixed length.
    bytes: [u8; KERNEL_HANDLE_BYTES_MAX],
}

impl KernelHandle {
    /// Makes a handle of these bytes; `None` if there are too many of them.
    pub(crate) fn new(kind: i32, bytes: &[u8]) -> Option<Self> {
        let mut handle = Self { kind, length: bytes.len(), bytes: [0; KERNEL_HANDLE_BYTES_MAX] };
        handle.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(handle)
    }

    /// Returns the number of its bytes.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Returns the handle's bytes, padded with zeros.
    pub(crate) const fn padded(&self) -> &[u8; KERNEL_HANDLE_BYTES_MAX] {
        &self.bytes
    }
}

/// `struct file_handle` with room for the bytes that follow it.
#[repr(C)]
struct RawHandle {
    length: libc::c_uint,
    kind: libc::c_int,
    bytes: [u8; KERNEL_HANDLE_BYTES_MAX],
}

/// The kind of handle that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandleUse {
    /// A handle that `open_by_handle_at` takes.
    Open,
    /// A handle that only identifies objects (`AT_HANDLE_FID`, Linux 6.5).
    Identify,
}

const AT_HANDLE_FID: libc::c_int = libc::AT_REMOVEDIR;

/// Returns the kernel's handle of `name` in `dir`, or of `dir` itself if `name` is empty, and the
/// number of the mount in which it was found. A link is not followed.
pub(crate) fn name_to_handle(
    dir: BorrowedFd<'_>,
    name: &CStr,
    purpose: HandleUse,
) -> Result<(KernelHandle, i32)> {
    let mut raw = RawHandle {
        length: KERNEL_HANDLE_BYTES_MAX as libc::c_uint,
        kind: 0,
        bytes: [0; KERNEL_HANDLE_BYTES_MAX],
    };
    let mut mount_id: libc::c_int = 0;
    let mut flags = if name.is_empty() { libc::AT_EMPTY_PATH } else { 0 };
    if purpose == HandleUse::Identify {
        flags |= AT_HANDLE_FID;
    }
    // SAFETY: `raw` is laid out as `struct file_handle` with `length` bytes of room, `name` ends
    // with a zero, and all pointers live over the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            dir.as_raw_fd(),
            name.as_ptr(),
            &raw mut raw,
            &raw mut mount_id,
            flags,
        )
    };
    checked(result)?;
    let length = raw.length as usize;
    if length > KERNEL_HANDLE_BYTES_MAX {
        return Err(Errno::OVERFLOW);
    }
    Ok((KernelHandle { kind: raw.kind, length, bytes: raw.bytes }, mount_id))
}

/// Opens the object of `handle` in the file system of `mount`. Needs CAP_DAC_READ_SEARCH.
pub(crate) fn open_by_handle(
    mount: BorrowedFd<'_>,
    handle: &KernelHandle,
    flags: rustix::fs::OFlags,
) -> Result<OwnedFd> {
    let mut raw =
        RawHandle { length: handle.length as libc::c_uint, kind: handle.kind, bytes: handle.bytes };
    let flags = (flags | rustix::fs::OFlags::CLOEXEC).bits() as libc::c_int;
    // SAFETY: `raw` is laid out as `struct file_handle`, `length` is within its room.
    let result = unsafe {
        libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), &raw mut raw, flags)
    };
    owned(result)
}

/// Checks whether the thread's present identity (its file system ids) may use the object of `fd`
/// for `mode` (`R_OK`, `W_OK`, `X_OK`).
pub(crate) fn may_access(fd: BorrowedFd<'_>, mode: libc::c_int) -> Result<()> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_EACCESS;
    // SAFETY: the empty path ends with a zero.
    let result =
        unsafe { libc::syscall(libc::SYS_faccessat2, fd.as_raw_fd(), c"".as_ptr(), mode, flags) };
    checked(result)
}

/// Changes the permission bits of the object of `fd`, which may be an `O_PATH` one (Linux 6.6).
pub(crate) fn change_mode(fd: BorrowedFd<'_>, mode: u32) -> Result<()> {
    // SAFETY: the empty path ends with a zero.
    let result = unsafe {
        libc::syscall(libc::SYS_fchmodat2, fd.as_raw_fd(), c"".as_ptr(), mode, libc::AT_EMPTY_PATH)
    };
    checked(result)
}

/// Gives the calling thread a working directory of its own.
pub(crate) fn unshare_cwd() -> Result<()> {
    // SAFETY: takes a plain number; working directory, root and mask of the thread stay what they
    // are, and are no longer those of the others.
    checked(libc::c_long::from(unsafe { libc::unshare(libc::CLONE_FS) }))
}

/// Sets the calling thread's user id for file-system access.
pub(crate) fn set_fs_uid(uid: u32) {
    // SAFETY: takes and gives plain numbers. It cannot report an error.
    unsafe { libc::syscall(libc::SYS_setfsuid, uid) };
}

/// Sets the calling thread's group id for file-system access.
pub(crate) fn set_fs_gid(gid: u32) {
    // SAFETY: takes and gives plain numbers. It cannot report an error.
    unsafe { libc::syscall(libc::SYS_setfsgid, gid) };
}

/// Returns the calling thread's present user id for file-system access.
pub(crate) fn fs_uid() -> u32 {
    // SAFETY: an id that does not exist changes nothing and returns the present one.
    unsafe { libc::syscall(libc::SYS_setfsuid, u32::MAX) as u32 }
}

/// Returns the calling thread's present group id for file-system access.
pub(crate) fn fs_gid() -> u32 {
    // SAFETY: an id that does not exist changes nothing and returns the present one.
    unsafe { libc::syscall(libc::SYS_setfsgid, u32::MAX) as u32 }
}

/// Sets the calling thread's supplementary groups; glibc's own call would set those of all threads.
pub(crate) fn set_groups(groups: &[u32]) -> Result<()> {
    // SAFETY: pointer and length are those of one slice.
    checked(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })
}

/// `struct mount_attr` of linux/mount.h.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const MOUNT_ATTR_NOATIME: u64 = 0x10;
const MOUNT_ATTR_ATIME_ALL: u64 = 0x70;

/// Makes reads through a detached mount leave access times unchanged.
pub(crate) fn set_mount_noatime(mount: BorrowedFd<'_>) -> Result<()> {
    let attributes = MountAttributes {
        set: MOUNT_ATTR_NOATIME,
        clear: MOUNT_ATTR_ATIME_ALL,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: the structure lives over the call and its size is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    checked(result)
}

/// Determines whether a read may wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Reads only data that is in memory; returns `Errno::AGAIN` if none is.
    Cached,
    /// Waits for the medium.
    Wait,
}

/// Appends up to `count` bytes of `file` at `offset` to `bytes`; returns their number.
pub(crate) fn read_append(
    file: &File,
    bytes: &mut Vec<u8>,
    offset: u64,
    count: usize,
    patience: Patience,
) -> Result<usize> {
    bytes.reserve(count);
    let vector =
        libc::iovec { iov_base: bytes.spare_capacity_mut().as_mut_ptr().cast(), iov_len: count };
    let flags = if patience == Patience::Cached { libc::RWF_NOWAIT } else { 0 };
    let offset = i64::try_from(offset).map_err(|_| Errno::INVAL)?;
    // SAFETY: the vector points at `count` bytes of spare room, which stay ours over the call. The
    // offset goes in two halves: the upper is ignored where a register holds 64 bits.
    let result = unsafe {
        libc::syscall(
            libc::SYS_preadv2,
            file.as_raw_fd(),
            &raw const vector,
            1_usize,
            offset,
            offset >> 32,
            flags,
        )
    };
    let read = usize::try_from(result).map_err(|_| last_error())?;
    // SAFETY: the kernel has filled `read` bytes after the old length, within the capacity.
    unsafe { bytes.set_len(bytes.len() + read.min(count)) };
    Ok(read)
}

/// `struct file_clone_range` of linux/fs.h.
#[repr(C)]
struct CloneRange {
    source: i64,
    source_offset: u64,
    length: u64,
    target_offset: u64,
}

const FICLONERANGE: libc::c_ulong = 0x4020_940d;

/// Lets `target` share blocks with `source`, where the file system can.
pub(crate) fn clone_range(
    source: (BorrowedFd<'_>, u64),
    target: (BorrowedFd<'_>, u64),
    length: u64,
) -> Result<()> {
    let range = CloneRange {
        source: i64::from(source.0.as_raw_fd()),
        source_offset: source.1,
        length,
        target_offset: target.1,
    };
    // SAFETY: the structure is the one this request takes and lives over the call.
    let result =
        unsafe { libc::ioctl(target.0.as_raw_fd(), FICLONERANGE as libc::Ioctl, &raw const range) };
    checked(libc::c_long::from(result))
}

/// Takes or releases (`F_UNLCK`) a lock on a range of a file for this open file description.
pub(crate) fn lock_range(
    file: BorrowedFd<'_>,
    kind: libc::c_int,
    (offset, length): (i64, i64),
    wait: bool,
) -> Result<()> {
    let command = if wait { libc::F_OFD_SETLKW } else { libc::F_OFD_SETLK };
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: offset,
        l_len: length,
        l_pid: 0,
    };
    // SAFETY: the structure is the one these commands take and lives over the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const lock) };
    checked(libc::c_long::from(result))
}

/// Returns whether this open file description could take a lock on a range of a file.
pub(crate) fn is_range_free(
    file: BorrowedFd<'_>,
    kind: libc::c_int,
    (offset, length): (i64, i64),
) -> Result<bool> {
    let mut lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: offset,
        l_len: length,
        l_pid: 0,
    };
    // SAFETY: the structure is the one this command takes and fills, and lives over the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    checked(libc::c_long::from(result))?;
    Ok(libc::c_int::from(lock.l_type) == libc::F_UNLCK)
}

/// Returns the signal by which the kernel reports a lease break. It is queued with the descriptor.
fn lease_signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

const F_SETSIG: libc::c_int = 10;
const F_SETOWN_EX: libc::c_int = 15;
const F_OWNER_TID: libc::c_int = 0;

/// `struct f_owner_ex` of linux/fcntl.h.
#[repr(C)]
struct Owner {
    kind: libc::c_int,
    id: libc::pid_t,
}

/// Makes the kernel signal one thread, and no other, when a lease of this open file description
/// breaks.
pub(crate) fn tell_thread(file: BorrowedFd<'_>, thread: libc::pid_t) -> Result<()> {
    let owner = Owner { kind: F_OWNER_TID, id: thread };
    // SAFETY: the structure is the one this command takes and lives over the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), F_SETOWN_EX, &raw const owner) };
    checked(libc::c_long::from(result))?;
    // SAFETY: takes plain numbers.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), F_SETSIG, lease_signal()) };
    checked(libc::c_long::from(result))
}

/// Takes or releases (`F_UNLCK`) a lease.
pub(crate) fn set_lease(file: BorrowedFd<'_>, kind: libc::c_int) -> Result<()> {
    // SAFETY: takes plain numbers.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) };
    checked(libc::c_long::from(result))
}

/// Returns the lease of this open file description; during a lease break, the lease that must
/// remain.
pub(crate) fn lease(file: BorrowedFd<'_>) -> Result<libc::c_int> {
    // SAFETY: takes and gives plain numbers.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) };
    checked(libc::c_long::from(result)).map(|()| result)
}

/// `struct delegation` of linux/fcntl.h.
#[repr(C)]
struct Delegation {
    flags: u32,
    kind: u16,
    unused: u16,
}

const F_GETDELEG: libc::c_int = 1024 + 15;
const F_SETDELEG: libc::c_int = 1024 + 16;

/// Takes (`F_RDLCK`) or releases (`F_UNLCK`) a delegation of a directory (Linux 6.19).
/// `Errno::INVAL` if the kernel or the file system has none.
pub(crate) fn set_delegation(directory: BorrowedFd<'_>, kind: libc::c_int) -> Result<()> {
    let delegation = Delegation { flags: 0, kind: kind as u16, unused: 0 };
    // SAFETY: the structure is the one this command takes and lives over the call.
    let result = unsafe { libc::fcntl(directory.as_raw_fd(), F_SETDELEG, &raw const delegation) };
    checked(libc::c_long::from(result))
}

/// Returns the delegation of this open file description; while a program waits, the one that must
/// remain.
pub(crate) fn delegation(directory: BorrowedFd<'_>) -> Result<libc::c_int> {
    let mut delegation = Delegation { flags: 0, kind: 0, unused: 0 };
    // SAFETY: the structure is the one this command takes and fills, and lives over the call.
    let result = unsafe { libc::fcntl(directory.as_raw_fd(), F_GETDELEG, &raw mut delegation) };
    checked(libc::c_long::from(result)).map(|()| libc::c_int::from(delegation.kind))
}

/// Makes the descriptor of `file` refer to the open file description of `other`, atomically: other
/// threads use either the old or the new one.
pub(crate) fn replace_descriptor(file: &File, other: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: the number stays open and the file's own.
    let result = unsafe { libc::dup3(other.as_raw_fd(), file.as_raw_fd(), libc::O_CLOEXEC) };
    checked(libc::c_long::from(result))
}

/// Makes a descriptor from which the calling thread reads the signals about its leases. From now on
/// neither that signal nor SIGIO, which comes when no more signals can be queued, does anything
/// else to the thread.
pub(crate) fn lease_signals() -> Result<OwnedFd> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is made before it is used and lives over the calls.
    let result = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), lease_signal());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGIO);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    owned(libc::c_long::from(result))
}

/// Reads a signal; returns the descriptor that it is about, if it has one. `Errno::AGAIN` if there
/// is none.
pub(crate) fn next_signal(signals: BorrowedFd<'_>) -> Result<Option<RawFd>> {
    let mut said = std::mem::MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the kernel writes no more than the structure holds.
    let result = unsafe { libc::read(signals.as_raw_fd(), said.as_mut_ptr().cast(), size) };
    checked(result as libc::c_long)?;
    // SAFETY: it is all plain numbers, and was zero where the kernel wrote nothing.
    let said = unsafe { said.assume_init() };
    Ok((said.ssi_signo != libc::SIGIO as u32).then_some(said.ssi_fd))
}

/// Reported events of marked files: changes of attributes (among them the count of links) and of
/// names.
const CHANGES: u64 = libc::FAN_ATTRIB | libc::FAN_MOVE_SELF;

/// Reported events of marked directories: those of files, and changes of the names in them.
const DIRECTORY_CHANGES: u64 = CHANGES
    | libc::FAN_CREATE
    | libc::FAN_DELETE
    | libc::FAN_MOVED_FROM
    | libc::FAN_MOVED_TO
    | libc::FAN_ONDIR;

/// The kind of a marked object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marked {
    Directory,
    Other,
}

/// The bound on the number of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkBound {
    /// The server's own bound is enough; it needs CAP_SYS_ADMIN.
    Ours,
    /// The kernel's bound for a user (fs.fanotify.max_user_marks).
    User,
}

/// Makes a group to which the kernel reports changes of marked files, in records that name files by
/// handle.
pub(crate) fn change_group(bound: MarkBound) -> Result<OwnedFd> {
    let mut flags =
        libc::FAN_CLASS_NOTIF | libc::FAN_REPORT_FID | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK;
    if bound == MarkBound::Ours {
        flags |= libc::FAN_UNLIMITED_MARKS;
    }
    // SAFETY: takes plain numbers.
    owned(libc::c_long::from(unsafe { libc::fanotify_init(flags, libc::O_CLOEXEC as u32) }))
}

/// A change of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkChange {
    Add,
    Remove,
}

/// Marks a file or directory, or removes its mark.
pub(crate) fn mark(
    group: BorrowedFd<'_>,
    (file, kind): (BorrowedFd<'_>, Marked),
    change: MarkChange,
) -> Result<()> {
    let flags = match change {
        MarkChange::Add => libc::FAN_MARK_ADD,
        MarkChange::Remove => libc::FAN_MARK_REMOVE,
    };
    let mask = if kind == Marked::Directory { DIRECTORY_CHANGES } else { CHANGES };
    let (group, file, no_path) = (group.as_raw_fd(), file.as_raw_fd(), std::ptr::null());
    // SAFETY: takes plain numbers; without a path the descriptor itself is meant.
    let result = unsafe { libc::fanotify_mark(group, flags, mask, file, no_path) };
    checked(libc::c_long::from(result))
}

/// Closes a file and returns the file system's error, if there is one.
pub(crate) fn close(file: OwnedFd) -> Result<()> {
    // SAFETY: the descriptor is ours, and nobody uses it after this, whatever the answer.
    checked(libc::c_long::from(unsafe { libc::close(file.into_raw_fd()) }))
}

fn checked(result: libc::c_long) -> Result<()> {
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

fn owned(result: libc::c_long) -> Result<OwnedFd> {
    checked(result)?;
    // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(result as RawFd) })
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

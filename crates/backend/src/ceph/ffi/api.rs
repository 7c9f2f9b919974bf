//! The functions and types of libcephfs, as `cephfs/libcephfs.h` of Ceph 16 declares them.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::Library;
use rustix::io::Errno;

/// The result of a call, or its error number.
pub(in crate::ceph) type Result<T> = std::result::Result<T, Errno>;

/// The library's file; its number changes with its binary interface.
const LIBRARY: &str = "libcephfs.so.2";

/// A pointer to a structure of the library.
pub(super) type Raw = *mut c_void;
type CText = *const c_char;
type Bytes = *mut c_char;
/// `ceph_deleg_cb_t`.
type Recalled = unsafe extern "C" fn(Raw, *mut c_void);

/// An object's number and the number of the snapshot in which it is seen (`vinodeno_t`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::ceph) struct Vino {
    pub(in crate::ceph) ino: u64,
    pub(in crate::ceph) snapid: u64,
}

/// `struct ceph_statx`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(in crate::ceph) struct Statx {
    pub(in crate::ceph) mask: u32,
    pub(in crate::ceph) blksize: u32,
    pub(in crate::ceph) nlink: u32,
    pub(in crate::ceph) uid: u32,
    pub(in crate::ceph) gid: u32,
    pub(in crate::ceph) mode: u16,
    pub(in crate::ceph) ino: u64,
    pub(in crate::ceph) size: u64,
    pub(in crate::ceph) blocks: u64,
    /// The number of the snapshot.
    pub(in crate::ceph) dev: libc::dev_t,
    pub(in crate::ceph) rdev: libc::dev_t,
    pub(in crate::ceph) atime: libc::timespec,
    pub(in crate::ceph) ctime: libc::timespec,
    pub(in crate::ceph) mtime: libc::timespec,
    pub(in crate::ceph) btime: libc::timespec,
    pub(in crate::ceph) version: u64,
}

impl Default for Statx {
    fn default() -> Self {
        // SAFETY: the structure is all plain numbers.
        unsafe { std::mem::zeroed() }
    }
}

/// Everything that [`Statx`] can hold.
pub(super) const STATX_ALL: c_uint = 0x1fff;

/// Bits of the mask of [`super::CephInode::setattr`].
pub(in crate::ceph) const SET_MODE: c_int = 1;
pub(in crate::ceph) const SET_UID: c_int = 1 << 1;
pub(in crate::ceph) const SET_GID: c_int = 1 << 2;
pub(in crate::ceph) const SET_MTIME: c_int = 1 << 3;
pub(in crate::ceph) const SET_ATIME: c_int = 1 << 4;
pub(in crate::ceph) const SET_SIZE: c_int = 1 << 5;

macro_rules! functions {
    ($($name:ident($($argument:ty),* $(,)?) $(-> $result:ty)?;)+) => {
        /// The functions of the library.
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl Api {
            fn find(library: &Library) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: the types are those of the library's header.
                Ok(Self { $($name: unsafe { *library.get(stringify!($name).as_bytes())? },)+ })
            }
        }
    };
}

functions! {
    ceph_create(*mut Raw, CText) -> c_int;
    ceph_conf_read_file(Raw, CText) -> c_int;
    ceph_conf_set(Raw, CText, CText) -> c_int;
    ceph_conf_get(Raw, CText, Bytes, usize) -> c_int;
    ceph_select_filesystem(Raw, CText) -> c_int;
    ceph_umask(Raw, u32) -> u32;
    ceph_init(Raw) -> c_int;
    ceph_start_reclaim(Raw, CText, c_uint) -> c_int;
    ceph_finish_reclaim(Raw);
    ceph_set_uuid(Raw, CText);
    ceph_mount(Raw, CText) -> c_int;
    ceph_unmount(Raw) -> c_int;
    ceph_release(Raw) -> c_int;
    ceph_get_fs_cid(Raw) -> i64;
    ceph_sync_fs(Raw) -> c_int;
    ceph_userperm_new(u32, u32, c_int, *mut u32) -> Raw;
    ceph_userperm_destroy(Raw);
    ceph_ll_lookup_root(Raw, *mut Raw) -> c_int;
    ceph_ll_lookup_vino(Raw, Vino, *mut Raw) -> c_int;
    ceph_ll_lookup(Raw, Raw, CText, *mut Raw, *mut Statx, c_uint, c_uint, Raw) -> c_int;
    ceph_ll_put(Raw, Raw) -> c_int;
    ceph_ll_getattr(Raw, Raw, *mut Statx, c_uint, c_uint, Raw) -> c_int;
    ceph_ll_setattr(Raw, Raw, *mut Statx, c_int, Raw) -> c_int;
    ceph_ll_open(Raw, Raw, c_int, *mut Raw, Raw) -> c_int;
    ceph_ll_close(Raw, Raw) -> c_int;
    ceph_ll_read(Raw, Raw, i64, u64, Bytes) -> c_int;
    ceph_ll_write(Raw, Raw, i64, u64, CText) -> c_int;
    ceph_ll_fsync(Raw, Raw, c_int) -> c_int;
    ceph_ll_sync_inode(Raw, Raw, c_int) -> c_int;
    ceph_ll_fallocate(Raw, Raw, c_int, i64, i64) -> c_int;
    ceph_ll_create(Raw, Raw, CText, u32, c_int, *mut Raw, *mut Raw, *mut Statx, c_uint, c_uint, Raw)
        -> c_int;
    ceph_ll_mknod(Raw, Raw, CText, u32, libc::dev_t, *mut Raw, *mut Statx, c_uint, c_uint, Raw)
        -> c_int;
    ceph_ll_mkdir(Raw, Raw, CText, u32, *mut Raw, *mut Statx, c_uint, c_uint, Raw) -> c_int;
    ceph_ll_symlink(Raw, Raw, CText, CText, *mut Raw, *mut Statx, c_uint, c_uint, Raw) -> c_int;
    ceph_ll_link(Raw, Raw, Raw, CText, Raw) -> c_int;
    ceph_ll_unlink(Raw, Raw, CText, Raw) -> c_int;
    ceph_ll_rmdir(Raw, Raw, CText, Raw) -> c_int;
    ceph_ll_rename(Raw, Raw, CText, Raw, CText, Raw) -> c_int;
    ceph_ll_readlink(Raw, Raw, Bytes, usize, Raw) -> c_int;
    ceph_ll_opendir(Raw, Raw, *mut Raw, Raw) -> c_int;
    ceph_ll_releasedir(Raw, Raw) -> c_int;
    ceph_seekdir(Raw, Raw, i64);
    ceph_readdirplus_r(Raw, Raw, *mut libc::dirent64, *mut Statx, c_uint, c_uint, *mut Raw)
        -> c_int;
    ceph_ll_statfs(Raw, Raw, *mut libc::statvfs64) -> c_int;
    ceph_ll_getxattr(Raw, Raw, CText, Raw, usize, Raw) -> c_int;
    ceph_ll_setxattr(Raw, Raw, CText, *const c_void, usize, c_int, Raw) -> c_int;
    ceph_ll_removexattr(Raw, Raw, CText, Raw) -> c_int;
    ceph_ll_listxattr(Raw, Raw, Bytes, usize, *mut usize, Raw) -> c_int;
    ceph_ll_getlk(Raw, Raw, *mut libc::flock, u64) -> c_int;
    ceph_get_cap_return_timeout(Raw) -> u32;
    ceph_set_deleg_timeout(Raw, u32) -> c_int;
    ceph_ll_delegation(Raw, Raw, c_uint, Recalled, *mut c_void) -> c_int;
    ceph_ll_setlk(Raw, Raw, *mut libc::flock, u64, c_int) -> c_int;
}

/// Returns the functions of the library, which stays loaded; or why it cannot be loaded.
pub(super) fn api() -> std::result::Result<&'static Api, String> {
    static API: OnceLock<std::result::Result<Api, String>> = OnceLock::new();
    let load = || {
        // SAFETY: the library's initializers make no demands on the process.
        let library = unsafe { Library::new(LIBRARY) };
        let api = library.and_then(|library| {
            // The library stays loaded: its threads may run until the process ends.
            let library = Box::leak(Box::new(library));
            Api::find(library)
        });
        api.map_err(|error| {
            format!("{LIBRARY} cannot be loaded ({error}): install it (Debian: libcephfs2)")
        })
    };
    API.get_or_init(load).as_ref().map_err(Clone::clone)
}

/// Returns the result of a call, or its error.
pub(super) fn checked(result: c_int) -> Result<usize> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}

/// Turns a failure into a text for the operator.
pub(super) fn told(result: c_int, what: &str) -> std::result::Result<(), String> {
    checked(result).map(drop).map_err(|error| format!("libcephfs cannot {what}: {error}"))
}

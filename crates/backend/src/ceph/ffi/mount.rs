//! Mounting a Ceph file system.

use std::ffi::{CStr, CString, c_int, c_uint};
use std::ptr::null_mut;
use std::time::Duration;

use rustix::io::Errno;

use super::api::{Api, Raw, Result, Vino, api, checked, told};
use super::inode::CephInode;
use crate::ceph::mount_number::MountNumber;

/// Logs that libcephfs keeps in memory for a report of a crash, each with its usual level. A thread
/// is woken for each line, which costs more than a small call itself. A level that the
/// configuration gives is kept.
const LOGS: &[(&CStr, &CStr)] =
    &[(c"debug_client", c"0/5"), (c"debug_objectcacher", c"0/5"), (c"debug_objecter", c"0/1")];

/// The file system that is mounted, and as whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(in crate::ceph) struct MountSource {
    /// The directory that becomes the root.
    pub(in crate::ceph) path: CString,
    /// The configuration file; Ceph's own search path otherwise.
    pub(in crate::ceph) configuration: Option<CString>,
    /// The name of the Ceph user without `client.`; Ceph's default (`admin`) otherwise.
    pub(in crate::ceph) id: Option<CString>,
    /// The name of the file system; the cluster's default otherwise.
    pub(in crate::ceph) file_system: Option<CString>,
    /// The name of this client. Ceph ends the session of an earlier client with this name at once,
    /// instead of waiting until it times out: a server that was killed has left one behind.
    pub(in crate::ceph) client: Option<CString>,
}

/// A mounted Ceph file system. Its threads and caches end when it is dropped, after all data was
/// written.
pub(in crate::ceph) struct CephMount {
    pub(super) api: &'static Api,
    pub(super) raw: Raw,
    pub(super) root: Perms,
    is_mounted: bool,
    /// Is free for another mount after this one has ended.
    _number: MountNumber,
}

// SAFETY: libcephfs has a lock of its own for every mount.
unsafe impl Send for CephMount {}
// SAFETY: as above.
unsafe impl Sync for CephMount {}

/// The ids under which a call is made.
pub(in crate::ceph) struct Perms {
    api: &'static Api,
    pub(super) raw: Raw,
    /// The supplementary groups, which `raw` points to.
    _groups: Vec<u32>,
}

// SAFETY: the library only reads the ids.
unsafe impl Send for Perms {}
// SAFETY: as above.
unsafe impl Sync for Perms {}

impl Perms {
    fn new(api: &'static Api, uid: u32, gid: u32, mut groups: Vec<u32>) -> Self {
        let count = c_int::try_from(groups.len()).unwrap_or(c_int::MAX);
        // SAFETY: the groups live as long as the result, and moving the vector does not move them.
        let raw = unsafe { (api.ceph_userperm_new)(uid, gid, count, groups.as_mut_ptr()) };
        Self { api, raw, _groups: groups }
    }
}

impl Drop for Perms {
    fn drop(&mut self) {
        // SAFETY: this was made by `ceph_userperm_new` and is used by nobody any more.
        unsafe { (self.api.ceph_userperm_destroy)(self.raw) };
    }
}

impl CephMount {
    /// Mounts a file system; `settings` are options of the Ceph configuration, and `number` is the
    /// one in the name of the client.
    ///
    /// # Errors
    /// A text for the operator: the step that failed, and why.
    pub(in crate::ceph) fn open(
        source: &MountSource,
        settings: &[(&CStr, &CStr)],
        number: MountNumber,
    ) -> std::result::Result<Self, String> {
        let api = api()?;
        let id = source.id.as_ref().map_or(std::ptr::null(), |id| id.as_ptr());
        let mut raw = null_mut();
        // SAFETY: both pointers live over the call; a null id means the default one.
        let made = unsafe { (api.ceph_create)(&raw mut raw, id) };
        told(made, "make a client of Ceph")?;
        let root = Perms::new(api, 0, 0, Vec::new());
        let mut mount = Self { api, raw, root, is_mounted: false, _number: number };
        mount.configure(source, settings)?;
        // SAFETY: the mount lives. Callers have applied their own masks.
        unsafe { (api.ceph_umask)(raw, 0) };
        mount.succeed(source)?;
        // SAFETY: the mount was made above, and the path ends with a zero.
        let mounted = unsafe { (api.ceph_mount)(raw, source.path.as_ptr()) };
        told(mounted, "mount the file system")?;
        mount.is_mounted = true;
        Ok(mount)
    }

    fn configure(
        &self,
        source: &MountSource,
        settings: &[(&CStr, &CStr)],
    ) -> std::result::Result<(), String> {
        let file = source.configuration.as_ref().map_or(std::ptr::null(), |file| file.as_ptr());
        // SAFETY: the mount lives; a null file means the default search path.
        let read = unsafe { (self.api.ceph_conf_read_file)(self.raw, file) };
        told(read, "read the configuration of Ceph")?;
        settings.iter().try_for_each(|(name, value)| self.set(name, value))?;
        let kept = LOGS.iter().filter(|(name, usual)| self.is_set(name, usual));
        kept.into_iter().try_for_each(|(name, _)| self.set(name, c"0/0"))?;
        if let Some(name) = &source.file_system {
            // SAFETY: the mount lives, and the name ends with a zero.
            let chosen = unsafe { (self.api.ceph_select_filesystem)(self.raw, name.as_ptr()) };
            told(chosen, "select the file system")?;
        }
        Ok(())
    }

    fn set(&self, name: &CStr, value: &CStr) -> std::result::Result<(), String> {
        // SAFETY: the mount lives, and both texts end with a zero.
        let set = unsafe { (self.api.ceph_conf_set)(self.raw, name.as_ptr(), value.as_ptr()) };
        told(set, &format!("set {name:?}"))
    }

    /// Returns whether a setting has this value.
    pub(in crate::ceph) fn is_set(&self, name: &CStr, value: &CStr) -> bool {
        let mut text = [0_u8; 32];
        let (at, length) = (text.as_mut_ptr().cast(), text.len());
        // SAFETY: the mount lives, the name ends with a zero, and there is room for the value.
        let got = unsafe { (self.api.ceph_conf_get)(self.raw, name.as_ptr(), at, length) };
        checked(got).is_ok() && CStr::from_bytes_until_nul(&text) == Ok(value)
    }

    /// Ends the session that an earlier process with this client's name has left.
    fn succeed(&self, source: &MountSource) -> std::result::Result<(), String> {
        const RECLAIM_RESET: c_uint = 1;
        let Some(name) = &source.client else { return Ok(()) };
        // SAFETY: the mount lives.
        told(unsafe { (self.api.ceph_init)(self.raw) }, "reach the cluster")?;
        // SAFETY: the mount lives, and the name ends with a zero, which holds below, too.
        let ended =
            unsafe { (self.api.ceph_start_reclaim)(self.raw, name.as_ptr(), RECLAIM_RESET) };
        if !matches!(checked(ended), Ok(_) | Err(Errno::NOENT)) {
            let error = Errno::from_raw_os_error(-ended);
            tracing::warn!(%error, "an earlier session with Ceph could not be ended: it times out");
        }
        // SAFETY: as above.
        unsafe {
            (self.api.ceph_finish_reclaim)(self.raw);
            (self.api.ceph_set_uuid)(self.raw, name.as_ptr());
        }
        Ok(())
    }

    /// The ids of the superuser.
    pub(in crate::ceph) const fn root_perms(&self) -> &Perms {
        &self.root
    }

    /// Makes the ids of a caller.
    pub(in crate::ceph) fn perms(&self, uid: u32, gid: u32, groups: Vec<u32>) -> Perms {
        Perms::new(self.api, uid, gid, groups)
    }

    /// Returns the number of the file system in its cluster.
    pub(in crate::ceph) fn file_system_id(&self) -> Result<i64> {
        // SAFETY: the mount lives.
        let id = unsafe { (self.api.ceph_get_fs_cid)(self.raw) };
        if id < 0 { Err(Errno::from_raw_os_error(-id as i32)) } else { Ok(id) }
    }

    /// Allows delegations; returns the time within which recalled ones must be given back. After
    /// it the library ends the mount; `None` if no time is left.
    pub(in crate::ceph) fn allow_delegations(&self) -> Option<Duration> {
        // SAFETY: the mount lives.
        let most = unsafe { (self.api.ceph_get_cap_return_timeout)(self.raw) };
        // The cluster would evict this client at the full time.
        let seconds = most.checked_sub(1).filter(|seconds| *seconds > 0)?;
        // SAFETY: the mount lives.
        let set = checked(unsafe { (self.api.ceph_set_deleg_timeout)(self.raw, seconds) });
        set.ok().map(|_| Duration::from_secs(seconds.into()))
    }

    /// Puts on stable storage all that was changed through this mount.
    pub(in crate::ceph) fn sync(&self) -> Result<()> {
        // SAFETY: the mount lives.
        checked(unsafe { (self.api.ceph_sync_fs)(self.raw) }).map(drop)
    }

    /// Finds the root directory.
    pub(in crate::ceph) fn root_inode(&self) -> Result<CephInode<'_>> {
        let mut raw = null_mut();
        // SAFETY: the mount lives, and the result is ours.
        checked(unsafe { (self.api.ceph_ll_lookup_root)(self.raw, &raw mut raw) })?;
        self.inode(raw)
    }

    /// Finds an object by its number.
    pub(in crate::ceph) fn lookup_vino(&self, vino: Vino) -> Result<CephInode<'_>> {
        let mut raw = null_mut();
        // SAFETY: the mount lives, and the result is ours.
        checked(unsafe { (self.api.ceph_ll_lookup_vino)(self.raw, vino, &raw mut raw) })?;
        self.inode(raw)
    }

    pub(super) fn inode(&self, raw: Raw) -> Result<CephInode<'_>> {
        if raw.is_null() { Err(Errno::STALE) } else { Ok(CephInode { mount: self, raw }) }
    }
}

impl Drop for CephMount {
    fn drop(&mut self) {
        if self.is_mounted {
            // SAFETY: the mount lives; inodes and files of it are gone, as they hold it.
            let ended = checked(unsafe { (self.api.ceph_unmount)(self.raw) });
            if let Err(error) = ended {
                tracing::error!(%error, "a Ceph file system could not be unmounted");
            }
        }
        // SAFETY: it was made by `ceph_create` and is not mounted any more.
        unsafe { (self.api.ceph_release)(self.raw) };
    }
}

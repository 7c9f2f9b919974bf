//! The mounted file systems of the tree that is served.

pub(crate) mod mount;

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use comity_vfs::{AsServer, Handle, MOUNT_TABLE, MountEntry, MountTable};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags, open, openat2, statx};
use rustix::io::Errno;

use self::mount::Mount;
use crate::passthrough::handles::open_handle::link_of;
use crate::passthrough::limits::MOUNTS_INTERVAL;

/// The mounted file systems of the tree that is served.
#[derive(Debug)]
pub(crate) struct Mounts {
    top: Arc<Mount>,
    path: PathBuf,
    /// True if mounts below the root are shown.
    crossing: bool,
    /// True if there are mounts below the root.
    crossed: AtomicBool,
    below: RwLock<Below>,
    looked: Mutex<Looked>,
}

/// An entry on which a file system is mounted, and the root shown there.
type Covered = (Box<[u8]>, Handle);

/// The mounts below the root.
#[derive(Debug, Default)]
struct Below {
    by_id: HashMap<u32, Arc<Mount>>,
    /// The mounts by path, with the ids of the kernel: reused when others come or go.
    mounts: HashMap<PathBuf, (i32, Arc<Mount>)>,
    /// The entries of each directory on which file systems are mounted, and the roots shown there.
    entries: HashMap<Handle, Vec<Covered>>,
    /// The directory above each mounted root.
    above: HashMap<Handle, Handle>,
}

/// The time of the last look at the table of mounts, and its content.
#[derive(Debug, Default)]
struct Looked {
    at: Option<Instant>,
    mounts: Vec<MountEntry>,
}

impl Mounts {
    /// Returns the mounts of a tree at `path` whose root is that of `top`, and the mounts below it
    /// if `crossing`.
    pub(crate) fn new(server: &AsServer, top: Mount, path: &Path, crossing: bool) -> Self {
        let mounts = Self {
            top: Arc::new(top),
            path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            crossing,
            crossed: AtomicBool::new(false),
            below: RwLock::default(),
            looked: Mutex::default(),
        };
        if crossing {
            mounts.look(server);
        }
        mounts
    }

    /// Returns the mount that holds the root.
    pub(crate) fn top(&self) -> &Arc<Mount> {
        &self.top
    }

    /// Returns the mount with this number.
    pub(crate) fn get(&self, id: u32) -> Option<Arc<Mount>> {
        if self.top.id == id {
            return Some(Arc::clone(&self.top));
        }
        self.read().by_id.get(&id).cloned()
    }

    /// Returns all mounts.
    pub(crate) fn all(&self) -> Vec<Arc<Mount>> {
        let below = self.read();
        std::iter::once(&self.top).chain(below.by_id.values()).cloned().collect()
    }

    /// Returns the root that is shown as `name` in `dir`, if a file system is mounted there.
    pub(crate) fn mounted_at(&self, dir: &Handle, name: &CStr) -> Option<Handle> {
        if !self.crossed.load(Ordering::Acquire) {
            return None;
        }
        let below = self.read();
        let entries = below.entries.get(dir)?;
        entries.iter().find(|(entry, _)| **entry == *name.to_bytes()).map(|(_, root)| *root)
    }

    /// Returns whether something is mounted on an entry of `dir`.
    pub(crate) fn is_covered(&self, dir: &Handle) -> bool {
        self.crossed.load(Ordering::Acquire) && self.read().entries.contains_key(dir)
    }

    /// Returns the directory above the mounted root `root`, if it is one.
    pub(crate) fn above(&self, root: &Handle) -> Option<Handle> {
        if !self.crossed.load(Ordering::Acquire) {
            return None;
        }
        self.read().above.get(root).copied()
    }

    /// Returns whether the table of mounts is due to be read.
    pub(crate) fn is_due(&self) -> bool {
        self.crossing && self.lock_looked().at.is_none_or(|at| at.elapsed() >= MOUNTS_INTERVAL)
    }

    /// Reads the table of mounts; returns whether it has changed.
    pub(crate) fn look(&self, server: &AsServer) -> bool {
        let mut looked = self.lock_looked();
        looked.at = Some(Instant::now());
        let table = match std::fs::read(MOUNT_TABLE) {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%error, "{MOUNT_TABLE} cannot be read: later mounts are not seen");
                return false;
            }
        };
        let mounts = MountTable::parse(&table).below(&self.path);
        if mounts == looked.mounts {
            return false;
        }
        self.take(server, &mounts);
        looked.mounts = mounts;
        true
    }

    fn lock_looked(&self) -> MutexGuard<'_, Looked> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, server: &AsServer, entries: &[MountEntry]) {
        let mut next = Below::default();
        let mut places: Vec<(&Path, Arc<Mount>)> = vec![(&self.path, Arc::clone(&self.top))];
        for entry in entries {
            match self.take_one(server, entry, (&mut next, &places)) {
                Ok(mount) => places.push((&entry.point, mount)),
                Err(errno) => {
                    let point = entry.point.display();
                    tracing::warn!(%point, %errno, "the file system mounted here cannot be shown");
                }
            }
        }
        let any = !next.entries.is_empty();
        *self.below.write().unwrap_or_else(PoisonError::into_inner) = next;
        self.crossed.store(any, Ordering::Release);
    }

    fn take_one(
        &self,
        server: &AsServer,
        entry: &MountEntry,
        (next, places): (&mut Below, &[(&Path, Arc<Mount>)]),
    ) -> Result<Arc<Mount>, Errno> {
        let outer = places.iter().rev().find(|(path, _)| entry.point.starts_with(path));
        let (path, outer) = outer.ok_or(Errno::NOENT)?;
        let within = entry.point.strip_prefix(path).map_err(|_| Errno::NOENT)?;
        let name = within.file_name().ok_or(Errno::NOENT)?.as_bytes();
        let dir = directory_of(server, outer, within.parent().unwrap_or(Path::new("")))?;
        let mount = self.mount_of(server, entry, next)?;
        let root = mount.root;
        next.mounts.insert(entry.point.clone(), (entry.id, Arc::clone(&mount)));
        next.by_id.entry(mount.id).or_insert_with(|| Arc::clone(&mount));
        next.entries.entry(dir).or_default().push((name.into(), root));
        next.above.insert(root, dir);
        Ok(mount)
    }

    /// Opens the mount of an entry, or returns the one it already has. Of two file systems with the
    /// same id only one can be shown.
    fn mount_of(
        &self,
        server: &AsServer,
        entry: &MountEntry,
        next: &Below,
    ) -> Result<Arc<Mount>, Errno> {
        if let Some((id, mount)) = self.read().mounts.get(&entry.point)
            && *id == entry.id
        {
            return Ok(Arc::clone(mount));
        }
        let fresh = Mount::open(server, Path::new(&link_of(root_of(server, entry)?.as_fd())))?;
        let same = |known: &Mount| known.device == fresh.device;
        let known =
            if self.top.id == fresh.id { Some(&self.top) } else { next.by_id.get(&fresh.id) };
        match known {
            Some(known) if !same(known) => Err(Errno::EXIST),
            // A part of a file system that is already shown at another path, or a new one.
            _ => Ok(Arc::new(fresh)),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Below> {
        self.below.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the root directory of a mount. Its path may lead to another directory by now, because a
/// user with write permission above it can replace a component by a link.
fn root_of(_: &AsServer, entry: &MountEntry) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open(&entry.point, flags, Mode::empty())?;
    let found = statx(&root, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    if u64::try_from(entry.id) == Ok(found.stx_mnt_id) { Ok(root) } else { Err(Errno::STALE) }
}

/// Returns the handle of the directory at `path` below the root of `mount`.
fn directory_of(_: &AsServer, mount: &Mount, path: &Path) -> Result<Handle, Errno> {
    if path.as_os_str().is_empty() {
        return Ok(mount.root);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let dir = openat2(&mount.top, path, flags, Mode::empty(), resolve)?;
    mount.name(dir.as_fd(), c"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_to_another_mount_by_now_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let server = AsServer::here().unwrap();
        let top = Mount::open(&server, folder.path()).unwrap();
        let mounts = Mounts::new(&server, top, folder.path(), false);
        let mut entry = MountEntry { id: -7, root: "/".into(), point: folder.path().into() };
        assert!(mounts.mount_of(&server, &entry, &Below::default()).is_err());
        let table = std::fs::read(MOUNT_TABLE).unwrap();
        let known = MountTable::parse(&table).below(Path::new("/"));
        entry = known.into_iter().find(|entry| entry.point == Path::new("/proc")).unwrap();
        assert!(mounts.mount_of(&server, &entry, &Below::default()).is_ok());
    }
}

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use comity_vfs::Handle;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags, open, openat2, statx};
use rustix::io::Errno;

use super::fetch::link_of;
use super::limits::MOUNTS_INTERVAL;
use super::mounts::{Mount, below};
use super::volume::Volume;

/// Where the kernel tells what is mounted.
const TABLE: &str = "/proc/thread-self/mountinfo";

/// The mounted file systems of the tree that is served.
#[derive(Debug)]
pub(super) struct Volumes {
    top: Arc<Volume>,
    path: PathBuf,
    /// Whether mounts below the root are shown.
    crossing: bool,
    /// Whether there are any.
    crossed: AtomicBool,
    below: RwLock<Below>,
    looked: Mutex<Looked>,
}

/// An entry that something is mounted on, and the root shown there.
type Covered = (Box<[u8]>, Handle);

/// What is mounted below the root.
#[derive(Debug, Default)]
struct Below {
    volumes: HashMap<u32, Arc<Volume>>,
    /// The volume of each mount, to be taken over when others come or go.
    mounts: HashMap<PathBuf, (i32, Arc<Volume>)>,
    /// The entries of each directory that something is mounted on, and the roots shown there.
    entries: HashMap<Handle, Vec<Covered>>,
    /// The directory that holds each mounted root.
    above: HashMap<Handle, Handle>,
}

/// When the table of mounts was looked at last, and what it said.
#[derive(Debug, Default)]
struct Looked {
    at: Option<Instant>,
    mounts: Vec<Mount>,
}

impl Volumes {
    /// Those of a tree at `path` whose root is that of `top`; what is mounted below it too, if
    /// `crossing`.
    pub(super) fn new(top: Volume, path: &Path, crossing: bool) -> Self {
        let volumes = Self {
            top: Arc::new(top),
            path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            crossing,
            crossed: AtomicBool::new(false),
            below: RwLock::default(),
            looked: Mutex::default(),
        };
        if crossing {
            volumes.look();
        }
        volumes
    }

    /// The one that holds the root.
    pub(super) fn top(&self) -> &Arc<Volume> {
        &self.top
    }

    /// The one of this number.
    pub(super) fn get(&self, id: u32) -> Option<Arc<Volume>> {
        if self.top.id == id {
            return Some(Arc::clone(&self.top));
        }
        self.read().volumes.get(&id).cloned()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<Volume>> {
        let below = self.read();
        std::iter::once(&self.top).chain(below.volumes.values()).cloned().collect()
    }

    /// The root that is shown as `name` in `dir`, if something is mounted there.
    pub(super) fn mounted_at(&self, dir: &Handle, name: &CStr) -> Option<Handle> {
        if !self.crossed.load(Ordering::Acquire) {
            return None;
        }
        let below = self.read();
        let entries = below.entries.get(dir)?;
        entries.iter().find(|(entry, _)| **entry == *name.to_bytes()).map(|(_, root)| *root)
    }

    /// Whether something is mounted on an entry of `dir`.
    pub(super) fn is_covered(&self, dir: &Handle) -> bool {
        self.crossed.load(Ordering::Acquire) && self.read().entries.contains_key(dir)
    }

    /// The directory that holds the mounted root `root`, if it is one.
    pub(super) fn above(&self, root: &Handle) -> Option<Handle> {
        if !self.crossed.load(Ordering::Acquire) {
            return None;
        }
        self.read().above.get(root).copied()
    }

    /// Whether it is time to look at the table of mounts.
    pub(super) fn is_due(&self) -> bool {
        self.crossing && self.lock_looked().at.is_none_or(|at| at.elapsed() >= MOUNTS_INTERVAL)
    }

    /// Looks at the table of mounts, with the server's own rights; tells whether it has changed.
    pub(super) fn look(&self) -> bool {
        let mut looked = self.lock_looked();
        looked.at = Some(Instant::now());
        let table = match std::fs::read(TABLE) {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%error, "{TABLE} cannot be read: later mounts are not seen");
                return false;
            }
        };
        let mounts = below(&table, &self.path);
        if mounts == looked.mounts {
            return false;
        }
        self.take(&mounts);
        looked.mounts = mounts;
        true
    }

    fn lock_looked(&self) -> MutexGuard<'_, Looked> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, mounts: &[Mount]) {
        let mut next = Below::default();
        let mut places: Vec<(&Path, Arc<Volume>)> = vec![(&self.path, Arc::clone(&self.top))];
        for mount in mounts {
            match self.take_one(mount, &mut next, &places) {
                Ok(volume) => places.push((&mount.point, volume)),
                Err(errno) => {
                    let point = mount.point.display();
                    tracing::warn!(%point, %errno, "what is mounted here cannot be shown");
                }
            }
        }
        let any = !next.entries.is_empty();
        *self.below.write().unwrap_or_else(PoisonError::into_inner) = next;
        self.crossed.store(any, Ordering::Release);
    }

    fn take_one(
        &self,
        mount: &Mount,
        next: &mut Below,
        places: &[(&Path, Arc<Volume>)],
    ) -> Result<Arc<Volume>, Errno> {
        let outer = places.iter().rev().find(|(path, _)| mount.point.starts_with(path));
        let (path, outer) = outer.ok_or(Errno::NOENT)?;
        let within = mount.point.strip_prefix(path).map_err(|_| Errno::NOENT)?;
        let name = within.file_name().ok_or(Errno::NOENT)?.as_bytes();
        let dir = directory_of(outer, within.parent().unwrap_or(Path::new("")))?;
        let volume = self.volume_of(mount, next)?;
        let root = volume.root;
        next.mounts.insert(mount.point.clone(), (mount.id, Arc::clone(&volume)));
        next.volumes.entry(volume.id).or_insert_with(|| Arc::clone(&volume));
        next.entries.entry(dir).or_default().push((name.into(), root));
        next.above.insert(root, dir);
        Ok(volume)
    }

    /// The volume of a mount, that of before if it is the same. Two file systems that say the same
    /// of themselves cannot both be shown.
    fn volume_of(&self, mount: &Mount, next: &Below) -> Result<Arc<Volume>, Errno> {
        if let Some((id, volume)) = self.read().mounts.get(&mount.point)
            && *id == mount.id
        {
            return Ok(Arc::clone(volume));
        }
        let fresh = Volume::open(Path::new(&link_of(root_of(mount)?.as_fd())))?;
        let same = |known: &Volume| known.device == fresh.device;
        let known =
            if self.top.id == fresh.id { Some(&self.top) } else { next.volumes.get(&fresh.id) };
        match known {
            Some(known) if !same(known) => Err(Errno::EXIST),
            // A part of a file system that is shown already, at another place.
            _ => Ok(Arc::new(fresh)),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Below> {
        self.below.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The top directory of a mount. By its path another may be reached by now: who may write above it
/// can put a link in the way.
fn root_of(mount: &Mount) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open(&mount.point, flags, Mode::empty())?;
    let found = statx(&root, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    if u64::try_from(mount.id) == Ok(found.stx_mnt_id) { Ok(root) } else { Err(Errno::STALE) }
}

/// The handle of the directory at `path` below the top of `volume`.
fn directory_of(volume: &Volume, path: &Path) -> Result<Handle, Errno> {
    if path.as_os_str().is_empty() {
        return Ok(volume.root);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let dir = openat2(&volume.top, path, flags, Mode::empty(), resolve)?;
    volume.name(dir.as_fd(), c"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_to_another_mount_by_now_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let top = Volume::open(folder.path()).unwrap();
        let volumes = Volumes::new(top, folder.path(), false);
        let mut mount = Mount { id: -7, point: folder.path().into() };
        assert!(volumes.volume_of(&mount, &Below::default()).is_err());
        let table = std::fs::read(TABLE).unwrap();
        let known = below(&table, Path::new("/"));
        mount = known.into_iter().find(|mount| mount.point == Path::new("/proc")).unwrap();
        assert!(volumes.volume_of(&mount, &Below::default()).is_ok());
    }
}

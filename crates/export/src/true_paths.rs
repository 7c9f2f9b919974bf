//! The paths of directories within their volumes, which do not depend on what is mounted where.

use std::path::{Path, PathBuf};

use comity_vfs::{AsServer, MOUNT_TABLE, MountTable};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// The mounts at the time when a configuration was loaded.
#[derive(Debug, Default)]
pub(crate) struct TruePaths(MountTable);

impl TruePaths {
    /// Reads the kernel's table of mounts. If it cannot be read, no true path is known.
    pub(crate) fn read(_: &AsServer) -> Self {
        Self(MountTable::parse(&std::fs::read(MOUNT_TABLE).unwrap_or_default()))
    }

    /// Returns the path of an existing directory from the top of its volume.
    pub(crate) fn of(&self, _: &AsServer, path: &Path) -> Option<PathBuf> {
        let whole = path.canonicalize().ok()?;
        let found = statx(CWD, &whole, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        let is_given = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        let id = is_given.then(|| i32::try_from(found.stx_mnt_id).ok()).flatten();
        self.0.path_in_volume(&whole, id)
    }
}

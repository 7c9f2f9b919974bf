use std::os::unix::fs::MetadataExt;
use std::path::Path;

use comity_vfs::AsServer;
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

use crate::export_spec::Settings;

impl Settings {
    /// Returns whether the mount point that an export at `path` requires is mounted.
    pub(crate) fn is_mounted(&self, path: &Path) -> bool {
        let Some(point) = &self.mount_point else { return true };
        let point = if point.as_os_str().is_empty() { path } else { point };
        // A path that the server cannot access counts as not mounted.
        AsServer::here().is_ok_and(|server| is_mount_point(&server, point))
    }
}

/// Returns whether a file system is mounted exactly at this path; false if that is unknown.
pub(crate) fn is_mount_point(server: &AsServer, path: &Path) -> bool {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS);
    match found {
        Ok(found) if found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) => {
            found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
        }
        _ => is_on_another_device(server, path),
    }
}

/// The method for Linux before 5.8; it does not notice a directory that is mounted within its own
/// file system.
fn is_on_another_device(_: &AsServer, path: &Path) -> bool {
    let device = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    match (device(path), device(&path.join(".."))) {
        (Some(own), Some(above)) => own.0 != above.0 || own == above,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_no_mount_point_and_the_root_is() {
        let dir = tempfile::tempdir().unwrap();
        let server = AsServer::here().unwrap();
        for check in [is_mount_point, is_on_another_device] {
            let check = |path: &Path| check(&server, path);
            assert!(check(Path::new("/")) && check(Path::new("/proc")));
            assert!(!check(dir.path()) && !check(&dir.path().join("missing")));
        }
    }
}

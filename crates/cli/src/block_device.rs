//! The disk on which a folder is.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use comity_daemon::is_sampled_disk;
use comity_vfs::AsServer;
use rustix::fs::{AtFlags, CWD, StatxFlags, major, minor, statx};

/// Returns the name of the whole disk of a folder, such as `sda`, as /proc/diskstats names it.
///
/// # Errors
/// The folder cannot be read, or is on no disk of this machine.
pub(crate) fn disk_of(server: &AsServer, folder: &Path) -> Result<String> {
    let shown = folder.display();
    let device = fs::metadata(folder).with_context(|| format!("cannot read {shown}"))?.dev();
    let numbers = match major(device) {
        // Some file systems, such as btrfs, have numbers of their own instead of their disk's.
        0 => mounted_device(server, folder),
        _ => Some(device),
    };
    let name = numbers.and_then(|device| whole_disk(server, Path::new("/sys/dev/block"), device));
    name.filter(|name| is_sampled_disk(name)).with_context(|| {
        format!("{shown} is on no disk of this machine: name a folder on the disk of the exports")
    })
}

/// Returns the number of the block device from which the file system of a folder is mounted; the
/// first one of a file system on several.
fn mounted_device(_: &AsServer, folder: &Path) -> Option<u64> {
    let mount = statx(CWD, folder, AtFlags::empty(), StatxFlags::MNT_ID).ok()?.stx_mnt_id;
    let source = mounted_source(&fs::read_to_string("/proc/self/mountinfo").ok()?, mount)?;
    let found = fs::metadata(source).ok()?;
    found.file_type().is_block_device().then_some(found.rdev())
}

/// Returns the absolute path of the source of a mount (/proc/self/mountinfo, proc(5)).
fn mounted_source(mountinfo: &str, mount: u64) -> Option<PathBuf> {
    let source = mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let is_wanted = before.split(' ').next()? == mount.to_string();
        is_wanted.then(|| after.split(' ').nth(1)).flatten()
    });
    source.map(PathBuf::from).filter(|source| source.is_absolute())
}

/// Returns the name of the disk with a number; for a partition, that of its disk.
fn whole_disk(_: &AsServer, devices: &Path, device: u64) -> Option<String> {
    let link = devices.join(format!("{}:{}", major(device), minor(device)));
    let place: PathBuf = fs::canonicalize(link).ok()?;
    let disk = if place.join("partition").exists() { place.parent()? } else { &place };
    Some(disk.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use rustix::fs::makedev;

    use super::*;

    #[test]
    fn a_partition_belongs_to_its_disk() {
        let sys = tempfile::tempdir().unwrap();
        let disk = sys.path().join("sda");
        fs::create_dir_all(disk.join("sda1")).unwrap();
        fs::write(disk.join("sda1/partition"), "1\n").unwrap();
        let link = |numbers: &str, to: &Path| {
            std::os::unix::fs::symlink(to, sys.path().join(numbers)).unwrap();
        };
        link("8:0", &disk);
        link("8:1", &disk.join("sda1"));
        let server = AsServer::here().unwrap();
        let found = |number| whole_disk(&server, sys.path(), makedev(8, number));
        assert_eq!(found(0).as_deref(), Some("sda"));
        assert_eq!(found(1).as_deref(), Some("sda"));
        assert_eq!(found(2), None);
    }

    #[test]
    fn a_file_system_with_a_number_of_its_own_is_on_the_device_of_its_mount() {
        let mountinfo = "29 1 0:25 / /mnt rw,relatime shared:1 - btrfs /dev/sdb1 rw,subvol=/\n\
            30 1 0:26 / /proc rw - proc proc rw\n31 1 0:27 /\n";
        assert_eq!(mounted_source(mountinfo, 29), Some("/dev/sdb1".into()));
        for other in [2, 30, 31, 32] {
            assert_eq!(mounted_source(mountinfo, other), None);
        }
    }

    #[test]
    fn a_folder_on_no_disk_is_an_error() {
        let server = AsServer::here().unwrap();
        let error = disk_of(&server, Path::new("/proc")).unwrap_err().to_string();
        assert!(error.contains("on no disk"), "{error}");
        assert!(disk_of(&server, Path::new("/nowhere")).unwrap_err().to_string().contains("read"));
    }
}

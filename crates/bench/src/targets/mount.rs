use std::fs;
use std::path::Path;

use crate::suite::MountRecord;

/// The mount that contains a path: the last one with the longest mount point.
pub(super) fn of(path: &Path) -> Option<MountRecord> {
    let text = fs::read_to_string("/proc/self/mountinfo").ok()?;
    find(&text, path)
}

fn find(mountinfo: &str, path: &Path) -> Option<MountRecord> {
    let mounts = mountinfo.lines().filter_map(parse);
    // The last mount with the longest mount point is on top.
    mounts.filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.len())
}

/// A line as in proc(5): id, parent, device, root, point, options, tags, `-`, type, source,
/// options.
fn parse(line: &str) -> Option<MountRecord> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mount: Vec<&str> = mount.split(' ').collect();
    let mut filesystem = filesystem.split(' ');
    let kind = filesystem.next()?.to_owned();
    let source = unescaped(filesystem.next()?);
    let options = format!("{},{}", mount.get(5)?, filesystem.next().unwrap_or_default());
    Some(MountRecord { source, point: unescaped(mount.get(4)?), filesystem: kind, options })
}

/// Replaces the octal escapes of the mount table, such as `\040` for a blank.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

/// The meaning of `fsync` on a type of file system.
pub(super) fn durability(filesystem: &str) -> &'static str {
    match filesystem {
        "tmpfs" | "ramfs" | "hugetlbfs" => "memory: nothing outlives the machine",
        "nfs" | "nfs4" => "the server's: fsync is a COMMIT, and worth what the server makes of it",
        "overlay" => "as the upper layer's file system has it",
        name if name.starts_with("fuse") => "as the program that serves the mount has it",
        "" => "unknown",
        _ => "a local file system: fsync is a barrier if the device obeys flushes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
        22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,errors=remount-ro\n\
        60 22 0:41 / /mnt/a\\040b rw,nosuid shared:9 master:1 - nfs4 host:/x rw,vers=4.2\n";

    #[test]
    fn the_longest_mount_point_wins() {
        let mount = find(MOUNTINFO, Path::new("/mnt/a b/c")).unwrap();
        assert_eq!((mount.source.as_str(), mount.filesystem.as_str()), ("host:/x", "nfs4"));
        assert_eq!(mount.options, "rw,nosuid,rw,vers=4.2");
        assert_eq!(find(MOUNTINFO, Path::new("/mnt/a")).unwrap().filesystem, "ext4");
        assert!(of(Path::new("/")).is_some());
    }
}

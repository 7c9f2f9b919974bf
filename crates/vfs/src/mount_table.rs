use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The kernel's table of the mounts that the calling thread sees.
pub const MOUNT_TABLE: &str = "/proc/thread-self/mountinfo";

/// One line of the kernel's table of mounts (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    /// The kernel's number of the mount.
    pub id: i32,
    /// The directory of the file system that is mounted, as a path from the file system's top.
    pub root: PathBuf,
    /// The directory on which it is mounted.
    pub point: PathBuf,
}

/// The mounts of a table, by number and by directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountTable {
    by_id: HashMap<i32, MountEntry>,
    /// Of several mounts on one directory the last, because it hides the others.
    by_point: HashMap<PathBuf, i32>,
}

impl MountTable {
    /// Reads the text of a table. Lines that are no entries are skipped.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let mut table = Self::default();
        for mount in text.split(|byte| *byte == b'\n').filter_map(parse) {
            table.by_point.insert(mount.point.clone(), mount.id);
            table.by_id.insert(mount.id, mount);
        }
        table
    }

    /// Returns the mounts strictly below `root`, outer ones first.
    #[must_use]
    pub fn below(&self, root: &Path) -> Vec<MountEntry> {
        let is_below = |point: &Path| point != root && point.starts_with(root);
        let points = self.by_point.iter().filter(|(point, _)| is_below(point));
        let mut mounts: Vec<_> = points.filter_map(|(_, id)| self.by_id.get(id)).cloned().collect();
        mounts.sort_by(|one, other| {
            let depth = |mount: &MountEntry| mount.point.components().count();
            depth(one).cmp(&depth(other)).then_with(|| one.point.cmp(&other.point))
        });
        mounts
    }

    /// Returns the path of a directory from the top of its file system, which is the same for every
    /// mount that shows the directory. `path` is without links. `id` is the number of its mount;
    /// without it, an outer mount that hides an inner one is not noticed.
    #[must_use]
    pub fn path_in_volume(&self, path: &Path, id: Option<i32>) -> Option<PathBuf> {
        let id =
            id.or_else(|| path.ancestors().find_map(|above| self.by_point.get(above).copied()));
        let mount = self.by_id.get(&id?)?;
        let below = path.strip_prefix(&mount.point).ok()?;
        // A namespace, which is no directory, has a root without a slash.
        mount.root.is_absolute().then(|| mount.root.join(below))
    }
}

/// Reads a line: id, parent, device, root, point, and fields that are not used here.
fn parse(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let mut path =
        |skipped| Some(PathBuf::from(OsString::from_vec(unescape(fields.nth(skipped)?))));
    let (root, point) = (path(2)?, path(0)?);
    (point.as_os_str().as_bytes().first() == Some(&b'/')).then_some(MountEntry { id, root, point })
}

/// In the table, blanks, line ends and backslashes are a backslash and three octal digits.
fn unescape(mut field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    while let Some((&first, rest)) = field.split_first() {
        let number = rest.split_first_chunk::<3>().filter(|_| first == b'\\').and_then(octal);
        let (byte, rest) = number.unwrap_or((first, rest));
        plain.push(byte);
        field = rest;
    }
    plain
}

/// Returns the byte that three octal digits stand for, and what follows them.
fn octal<'a>((&[a, b, c], rest): (&[u8; 3], &'a [u8])) -> Option<(u8, &'a [u8])> {
    let digit = |digit: u8| matches!(digit, b'0'..=b'7').then(|| u32::from(digit - b'0'));
    let number = digit(a)? << 6 | digit(b)? << 3 | digit(c)?;
    Some((u8::try_from(number).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
40 22 0:5 / /data/a\\040b/in rw shared:3 - tmpfs none rw
31 22 0:4 / /data/a\\040b rw - tmpfs none rw
32 22 0:6 / /data rw - tmpfs none rw
33 22 0:7 / /database rw - tmpfs none rw
41 22 0:8 / /data/a\\040b/in rw - tmpfs none rw
50 22 8:1 /home/c\\134d /srv/bound rw - ext4 /dev/sda1 rw
51 50 0:9 net:[4026531840] /run/netns/x rw - nsfs nsfs rw
not a line
60 22 0:6 /
61
x 22 0:6 / /never rw
62 22 0:6 / relative rw
";

    #[test]
    fn mounts_below_a_root_come_outer_first_and_once() {
        let mount = |id, point: &str| MountEntry { id, root: "/".into(), point: point.into() };
        let expected = [mount(31, "/data/a b"), mount(41, "/data/a b/in")];
        assert_eq!(MountTable::parse(TABLE).below(Path::new("/data")), expected);
        assert_eq!(MountTable::parse(b"").below(Path::new("/")), []);
    }

    #[test]
    fn a_directory_has_one_path_in_its_volume_wherever_it_is_mounted() {
        let table = MountTable::parse(TABLE);
        for (path, id, expected) in [
            ("/home/c\\d/e", None, Some("/home/c\\d/e")),
            ("/srv/bound/e", None, Some("/home/c\\d/e")),
            ("/srv/bound", Some(50), Some("/home/c\\d/")),
            ("/data/a b/in/x", None, Some("/x")),
            // The outer mount was mounted later, on a directory above the inner one.
            ("/data/a b/in/x", Some(32), Some("/a b/in/x")),
            ("/never/x", None, Some("/never/x")),
            ("/srv/elsewhere", Some(50), None),
            ("/srv/bound", Some(99), None),
            ("/run/netns/x", None, None),
            ("relative", None, None),
        ] {
            let found = table.path_in_volume(Path::new(path), id);
            assert_eq!(found.as_deref(), expected.map(Path::new), "{path} {id:?}");
        }
        assert_eq!(MountTable::parse(b"").path_in_volume(Path::new("/"), None), None);
    }

    #[test]
    fn escapes_that_stand_for_no_byte_are_kept_as_they_are() {
        for (escaped, plain) in [
            (&b"\\040"[..], &b" "[..]),
            (b"\\377\\134\\", b"\xff\\\\"),
            (b"\\04", b"\\04"),
            (b"\\400", b"\\400"),
            (b"\\089\\0x1", b"\\089\\0x1"),
            (b"\\\\040", b"\\ "),
        ] {
            assert_eq!(unescape(escaped), plain, "{escaped:?}");
        }
    }
}

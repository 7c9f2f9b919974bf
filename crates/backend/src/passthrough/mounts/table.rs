use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// One line of the kernel's table of mounts (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountEntry {
    pub(crate) id: i32,
    pub(crate) point: PathBuf,
}

/// Returns the mounts strictly below `root`, outer ones first. Of several on one directory only the
/// last is returned, because it hides the others.
pub(crate) fn below(table: &[u8], root: &Path) -> Vec<MountEntry> {
    let mut mounts: Vec<MountEntry> = Vec::new();
    for mount in table.split(|byte| *byte == b'\n').filter_map(parse) {
        if mount.point != root && mount.point.starts_with(root) {
            mounts.retain(|other| other.point != mount.point);
            mounts.push(mount);
        }
    }
    mounts.sort_by_key(|mount| mount.point.components().count());
    mounts
}

fn parse(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let point = PathBuf::from(OsString::from_vec(unescape(fields.nth(3)?)));
    (point.as_os_str().as_bytes().first() == Some(&b'/')).then_some(MountEntry { id, point })
}

/// In the table, blanks, line ends and backslashes are a backslash and three octal digits.
fn unescape(mut field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    while let Some((&first, rest)) = field.split_first() {
        field = rest;
        let digits = rest.first_chunk::<3>().filter(|_| first == b'\\');
        let octal = |digit: u8| matches!(digit, b'0'..=b'7').then(|| u32::from(digit - b'0'));
        let number =
            digits.and_then(|&[a, b, c]| Some(octal(a)? << 6 | octal(b)? << 3 | octal(c)?));
        match number.and_then(|number| u8::try_from(number).ok()) {
            Some(byte) => {
                plain.push(byte);
                field = &rest[3..];
            }
            None => plain.push(first),
        }
    }
    plain
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
not a line
";

    #[test]
    fn mounts_below_a_root_come_outer_first_and_once() {
        let mount = |id, point: &str| MountEntry { id, point: point.into() };
        let expected = [mount(31, "/data/a b"), mount(41, "/data/a b/in")];
        assert_eq!(below(TABLE, Path::new("/data")), expected);
        assert_eq!(below(b"", Path::new("/")), []);
    }
}

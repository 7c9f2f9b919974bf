//! Conflicts: data that could not be written to its file, see docs/formats.md, "Disk cache".

use std::io;

use crate::dirty::Extents;
use crate::key::FileName;
use crate::medium::Medium;

/// The folder of all conflicts.
pub(crate) const CONFLICTS: &str = "conflicts";

/// Stores the data of a file as a conflict; returns its folder.
///
/// # Errors
/// Those of the disk: part of the data is not stored.
pub(crate) fn keep(
    medium: &dyn Medium,
    file: &FileName,
    extents: &Extents,
    now: u64,
) -> io::Result<String> {
    let bytes = file.handle.bytes().iter();
    let handle: String = bytes.map(|byte| format!("{byte:02x}")).collect();
    let folder = free_folder(medium, file, now)?;
    let text = format!("volume {:x}\nhandle {handle}\n", file.volume);
    put(medium, &format!("{folder}/handle"), text.as_bytes())?;
    for (offset, data) in extents.iter() {
        put(medium, &format!("{folder}/{offset}"), data)?;
    }
    Ok(folder)
}

/// Returns a folder name that is not in use. The name contains the file's digits, and only one
/// thread at a time stores data of a file.
fn free_folder(medium: &dyn Medium, file: &FileName, now: u64) -> io::Result<String> {
    let taken = medium.list(CONFLICTS)?;
    let name = |number: usize| format!("{now}-{}-{number}", file.digits());
    let free = (0..=taken.len()).map(name).find(|name| !taken.contains(name));
    Ok(format!("{CONFLICTS}/{}", free.unwrap_or_else(|| name(taken.len() + 1))))
}

fn put(medium: &dyn Medium, path: &str, bytes: &[u8]) -> io::Result<()> {
    medium.write(path, 0, bytes)?;
    medium.sync(path)
}

#[cfg(test)]
mod tests {
    use comity_vfs::Handle;

    use super::*;
    use crate::memory_medium::MemoryMedium;

    #[test]
    fn conflicts_of_one_moment_have_a_folder_each() {
        let medium = MemoryMedium::default();
        let file = |name: &[u8]| FileName { volume: 1, handle: Handle::new(name).unwrap() };
        let mut extents = Extents::default();
        extents.put(0, b"data");
        let folders =
            [b"a", b"a", b"b"].map(|name| keep(&medium, &file(name), &extents, 5).unwrap());
        medium.remove(&format!("{}/0", folders[0])).unwrap();
        medium.remove(&format!("{}/handle", folders[0])).unwrap();
        let last = keep(&medium, &file(b"c"), &extents, 5).unwrap();
        let all: std::collections::HashSet<_> = folders.iter().chain([&last]).collect();
        assert_eq!(all.len(), 4, "{folders:?}, {last}");
    }
}

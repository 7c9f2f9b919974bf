//! The names of a file's objects on the disk.

use comity_vfs::Handle;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;

/// A cached file: the number of its file system and its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileName {
    /// The number of its file system.
    pub(crate) volume: u64,
    /// Its handle.
    pub(crate) handle: Handle,
}

/// The paths of a file's objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paths {
    /// The map: its header and its pages' checksums.
    pub(crate) map: String,
    /// Its pages.
    pub(crate) data: String,
}

/// The folder of all objects.
pub(crate) const OBJECTS: &str = "objects";

impl FileName {
    /// The paths of its objects.
    pub(crate) fn paths(&self) -> Paths {
        let digits = self.digits();
        Paths::of(digits.get(..3).unwrap_or_default(), &digits)
    }

    /// The common name of its objects: a hash of the file's name as digits.
    pub(crate) fn digits(&self) -> String {
        let mut hasher = SipHasher24::new();
        hasher.write(&self.volume.to_le_bytes());
        hasher.write(self.handle.bytes());
        format!("{:032x}", u128::from(hasher.finish128()))
    }
}

impl Paths {
    /// The paths of the objects with this name in this folder.
    pub(crate) fn of(folder: &str, name: &str) -> Self {
        let path = |ending: &str| format!("{OBJECTS}/{folder}/{name}.{ending}");
        Self { map: path("map"), data: path("data") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_paths_of_their_own() {
        let paths = |volume, handle: &[u8]| {
            FileName { volume, handle: Handle::new(handle).unwrap() }.paths()
        };
        let one = paths(1, b"a");
        assert_eq!(one, paths(1, b"a"));
        assert_ne!(one, paths(2, b"a"));
        assert_ne!(one, paths(1, b"b"));
        assert_eq!(one.map.len(), "objects/123/".len() + 32 + ".map".len());
        assert!(one.data.ends_with(".data"));
    }
}

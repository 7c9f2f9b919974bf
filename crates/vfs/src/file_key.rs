use std::hash::{Hash, Hasher};

use crate::Handle;

/// The key of a file in the state of clients. Two keys are equal if their volumes and handles are
/// equal, whichever exports the callers used.
#[derive(Debug, Clone, Copy)]
pub struct FileKey {
    /// The file system that has the file: see [`crate::Fs::volume`].
    pub volume: u64,
    /// The number of the export by which the caller named it. It is not compared. Calls to a client
    /// must name the file by the export that this client used.
    pub export: u32,
    /// The backend's handle.
    pub handle: Handle,
}

impl PartialEq for FileKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.volume == other.volume && self.handle == other.handle
    }
}

impl Eq for FileKey {}

impl Hash for FileKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.volume);
        self.handle.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_file_has_one_key_in_all_exports_of_its_volume() {
        let handle = |byte| Handle::new(&[byte]).unwrap();
        let key = |volume, export, byte| FileKey { volume, export, handle: handle(byte) };
        let known = HashSet::from([key(1, 1, 1)]);
        assert!(known.contains(&key(1, 2, 1)));
        assert!(!known.contains(&key(2, 1, 1)));
        assert!(!known.contains(&key(1, 1, 2)));
    }
}

//! Pinned files, which the cleaner must keep.

use super::PageStore;
use crate::key::FileName;

impl PageStore {
    /// Pins or unpins a file; returns false if nothing of it is cached.
    pub(crate) fn set_pinned(&self, file: &FileName, is_pinned: bool) -> bool {
        let object = self.object(file);
        let mut place = object.write();
        let Some(header) = place.as_mut() else { return false };
        if header.is_pinned != is_pinned {
            header.is_pinned = is_pinned;
            self.save_later(file);
        }
        true
    }
}

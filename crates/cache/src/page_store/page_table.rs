//! The table of a map: a checksum for each page.

use std::ops::Range;

use super::PageStore;
use crate::header::{ENTRY_BYTES, TABLE_OFFSET};
use crate::key::Paths;
use crate::limits::TABLE_STEP;

impl PageStore {
    /// The checksums of pages; 0 for a missing page.
    pub(super) fn checksums(&self, paths: &Paths, pages: Range<u64>) -> Vec<u64> {
        let count = (pages.end - pages.start) as usize;
        let mut bytes = vec![0; count * ENTRY_BYTES as usize];
        let at = TABLE_OFFSET + pages.start * ENTRY_BYTES;
        let read = self.health.note(self.medium.read(&paths.map, at, &mut bytes)).unwrap_or(0);
        let known = bytes.get(..read).unwrap_or_default().as_chunks::<8>().0.iter();
        let mut sums: Vec<u64> = known.map(|entry| u64::from_le_bytes(*entry)).collect();
        sums.resize(count, 0);
        sums
    }

    /// Sets the checksums of pages from `first` on; returns whether they are set.
    pub(super) fn set_checksums(&self, paths: &Paths, first: u64, sums: &[u64]) -> bool {
        let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        let at = TABLE_OFFSET + first * ENTRY_BYTES;
        self.health.note(self.medium.write(&paths.map, at, &bytes)).is_some()
    }

    /// Clears the checksums of pages, some at a time; returns whether all are cleared.
    #[must_use]
    pub(super) fn clear_checksums(&self, paths: &Paths, pages: Range<u64>) -> bool {
        let steps = (pages.end - pages.start).div_ceil(TABLE_STEP);
        let mut firsts = (0..steps).map(|step| pages.start + step * TABLE_STEP);
        firsts.all(|first| {
            let count = pages.end.min(first + TABLE_STEP) - first;
            self.set_checksums(paths, first, &vec![0; count as usize])
        })
    }

    /// Clears the checksums of all pages from `first` on, regardless of the file's length; returns
    /// whether they are cleared.
    #[must_use]
    pub(super) fn cut_checksums(&self, paths: &Paths, first: u64) -> bool {
        let end = TABLE_OFFSET + first * ENTRY_BYTES;
        self.health.note(self.medium.truncate(&paths.map, end)).is_some()
    }

    /// Number of pages that the table has entries for.
    pub(super) fn last_page(&self, paths: &Paths) -> u64 {
        let length = self.health.note(self.medium.length(&paths.map)).unwrap_or(0);
        length.saturating_sub(TABLE_OFFSET).div_ceil(ENTRY_BYTES)
    }
}

//! Verification: reads all cached pages, and drops those that do not match their checksums.

use super::{CachedFile, PageStore, page_range};
use crate::header::{Header, checksum};
use crate::key::{FileName, OBJECTS, Paths};
use crate::limits::{PAGE_BYTES, TABLE_STEP, VERIFY_PAGES};

/// A position in the verification: a folder, a file in it and a page of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct VerifyPlace {
    pub(crate) folder: String,
    pub(crate) name: String,
    pub(crate) page: u64,
}

/// Counts of the verified files and pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Verified {
    pub(crate) files: u64,
    pub(crate) pages: u64,
    pub(crate) damaged: u64,
}

impl Verified {
    const fn is_enough(&self) -> bool {
        self.pages >= VERIFY_PAGES || self.files >= VERIFY_PAGES
    }
}

impl PageStore {
    /// Verifies some files from `place` on and counts them; returns the place to continue at, or
    /// `None` after the last file.
    pub(crate) fn verify(&self, place: &VerifyPlace, count: &mut Verified) -> Option<VerifyPlace> {
        let mut folders = self.list(OBJECTS);
        folders.sort();
        folders.retain(|folder| *folder >= place.folder);
        for folder in folders {
            let from = if folder == place.folder { place.name.as_str() } else { "" };
            for name in self.maps(&folder, from) {
                let page = if name == from { place.page } else { 0 };
                let here = VerifyPlace { folder: folder.clone(), name, page };
                if let Some(rest) = self.verify_file(here, count) {
                    return Some(rest);
                }
            }
        }
        None
    }

    /// The names of the files in a folder, sorted, starting with `from`.
    fn maps(&self, folder: &str, from: &str) -> Vec<String> {
        let files = self.list(&format!("{OBJECTS}/{folder}")).into_iter();
        let maps = files.filter_map(|file| Some(file.strip_suffix(".map")?.to_owned()));
        let mut names: Vec<String> = maps.filter(|name| name.as_str() >= from).collect();
        names.sort();
        names
    }

    /// Verifies a file to its end or until the step has done enough; in the second case returns the
    /// place to continue at.
    fn verify_file(&self, mut here: VerifyPlace, count: &mut Verified) -> Option<VerifyPlace> {
        let file = self.load(&Paths::of(&here.folder, &here.name)).map(|header| header.file);
        while !count.is_enough() {
            match file.and_then(|file| self.verify_pages(&file, here.page, count)) {
                Some(page) => here.page = page,
                None => {
                    count.files += 1;
                    return None;
                }
            }
        }
        Some(here)
    }

    /// Verifies the pages of one part of the table; returns the page to continue at, or `None` at
    /// the end of the file.
    fn verify_pages(&self, file: &FileName, first: u64, count: &mut Verified) -> Option<u64> {
        let object = self.object(file);
        // The lock keeps writers from changing a page between the reads of its checksum and its
        // data.
        let place = object.write();
        let header = place.as_ref()?;
        let total = header.size.div_ceil(PAGE_BYTES).min(self.last_page(&object.paths));
        let end = total.min(first.saturating_add(TABLE_STEP));
        let sums = if first < end { self.checksums(&object.paths, first..end) } else { Vec::new() };
        for (page, sum) in (first..end).zip(sums).filter(|(_, sum)| *sum != 0) {
            count.pages += 1;
            if !self.is_whole(&object, header, (page, sum)) {
                count.damaged += 1;
                self.health.note_damage();
                self.set_checksums(&object.paths, page, &[0]);
            }
        }
        (end < total).then_some(end)
    }

    fn is_whole(&self, object: &CachedFile, header: &Header, (page, sum): (u64, u64)) -> bool {
        let whole = page_range(page, header.size);
        let mut content = vec![0; (whole.end - whole.start) as usize];
        let read =
            self.health.note(self.medium.read(&object.paths.data, whole.start, &mut content));
        read == Some(content.len()) && checksum(header.epoch, page, &content) == sum
    }
}

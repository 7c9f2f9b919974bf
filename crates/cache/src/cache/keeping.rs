//! Requests of the user about cached files: pin one, drop one, or verify all.

use comity_vfs::{Handle, Result, Status};

use super::Cache;
use crate::page_store::{Verified, VerifyPlace};

/// The outcome of a step of [`Cache::verify`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyStep {
    /// Files that were read to their ends.
    pub files: u64,
    /// Pages that were read.
    pub pages: u64,
    /// Pages that did not match their checksums and were dropped.
    pub damaged_pages: u64,
    /// The place at which the next step begins; `None` after the last one.
    pub next: Option<String>,
}

impl Cache {
    /// Drops the cached pages of a file and its pin; returns the number of bytes freed. Unsent data
    /// stays.
    pub fn drop_file(&self, node: &Handle) -> u64 {
        self.filler.forget(node);
        self.store.evict(&self.file(node))
    }

    /// Protects a file from the cleaner, or ends the protection.
    ///
    /// # Errors
    /// [`Status::NoEnt`] if nothing of it is cached.
    pub fn set_pinned(&self, node: &Handle, is_pinned: bool) -> Result<()> {
        let is_there = self.store.set_pinned(&self.file(node), is_pinned);
        if is_there || !is_pinned { Ok(()) } else { Err(Status::NoEnt) }
    }

    /// Reads some of the pages on the cache disk, starting at `place` or at the first page, and
    /// compares their checksums. Damaged pages are dropped, and fetched again when needed.
    ///
    /// # Errors
    /// [`Status::Inval`] if `place` is not the `next` of an earlier step.
    pub fn verify(&self, place: Option<&str>) -> Result<VerifyStep> {
        let place = place.map_or_else(|| Ok(VerifyPlace::default()), place_of)?;
        let mut count = Verified::default();
        let next = self.store.verify(&place, &mut count);
        let Verified { files, pages, damaged } = count;
        let next = next.map(|VerifyPlace { folder, name, page }| format!("{folder}/{name}/{page}"));
        Ok(VerifyStep { files, pages, damaged_pages: damaged, next })
    }
}

/// Parses the place from which a check continues.
fn place_of(text: &str) -> Result<VerifyPlace> {
    let mut parts = text.split('/').map(str::to_owned);
    match (parts.next(), parts.next(), parts.next().map(|page| page.parse())) {
        (Some(folder), Some(name), Some(Ok(page))) => Ok(VerifyPlace { folder, name, page }),
        _ => Err(Status::Inval),
    }
}

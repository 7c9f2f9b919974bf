//! Pages of files on the cache disk.
//!
//! This module never asks the server: a page belongs to a change attribute, and the callers find
//! out whether the file still has it. A damaged page counts as missing.

mod cached_file;
mod disk_health;
mod page_table;
mod pins;
mod verify;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use quick_cache::sync::Cache;

use crate::header::{HEADER_BYTES, Header, checksum};
use crate::key::{FileName, Paths};
use crate::limits::{OBJECTS_MAX, PAGE_BYTES, TABLE_STEP, TRANSFER_BYTES_MAX, USE_GRAIN_SECONDS};
use crate::medium::Medium;
use crate::options::Clock;

use cached_file::CachedFile;
pub(crate) use disk_health::DiskHealth;
pub(crate) use verify::{Verified, VerifyPlace};

/// The version of a file that pages belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileVersion {
    /// Its change attribute.
    pub(crate) change: u64,
    /// Its length in bytes.
    pub(crate) size: u64,
}

/// The pages of one version of a file. An earlier version has another epoch, so its pages can be
/// neither read nor filled with this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch {
    number: u64,
    /// The number of the file's last change through this cache: data fetched before it is not
    /// stored.
    edit: u64,
}

/// Bytes of a file from an offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageRun {
    /// This number of bytes was read.
    Hit(u64),
    /// This number of bytes is missing.
    Miss(u64),
}

/// The pages of all cached files.
pub(crate) struct PageStore {
    medium: Arc<dyn Medium>,
    objects: Cache<FileName, Arc<CachedFile>>,
    health: DiskHealth,
    random: RandomState,
    numbers: AtomicU64,
    /// Bytes added less bytes removed since the cleaner counted all files.
    drift: AtomicI64,
    /// Files whose headers on the disk are out of date.
    unsaved: Mutex<HashSet<FileName>>,
    clock: Clock,
}

/// The numbers of the pages that overlap a range.
fn pages(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
}

/// The bytes of a page, in a file of this length.
fn page_range(page: u64, size: u64) -> Range<u64> {
    let start = page * PAGE_BYTES;
    start.min(size)..start.saturating_add(PAGE_BYTES).min(size)
}

impl PageStore {
    pub(crate) fn new(medium: Arc<dyn Medium>, clock: Clock) -> Self {
        Self {
            medium,
            objects: Cache::new(OBJECTS_MAX),
            health: DiskHealth::default(),
            random: RandomState::new(),
            numbers: AtomicU64::new(0),
            drift: AtomicI64::new(0),
            unsaved: Mutex::default(),
            clock,
        }
    }

    /// The health of the disk.
    pub(crate) const fn health(&self) -> &DiskHealth {
        &self.health
    }

    /// Returns the epoch of this version of a file. Pages of another version are dropped.
    pub(crate) fn enter(&self, file: &FileName, version: FileVersion) -> Epoch {
        let object = self.object(file);
        let is_good = |header: &&Header| is_of(header, version) && !self.is_use_old(header);
        if let Some(header) = object.read().as_ref().filter(is_good) {
            return object.epoch(header);
        }
        let mut place = object.write();
        match place.as_mut().filter(|header| is_of(header, version)) {
            Some(header) => {
                self.note_use(header);
                object.epoch(header)
            }
            None => self.begin(file, &object, &mut place, version),
        }
    }

    /// The version that the cached pages of a file belong to, if there are any.
    pub(crate) fn version(&self, file: &FileName) -> Option<FileVersion> {
        let object = self.object(file);
        let header = object.read();
        header.as_ref().map(|header| FileVersion { change: header.change, size: header.size })
    }

    /// Begins a new epoch, which invalidates the pages on the disk.
    fn begin(
        &self,
        file: &FileName,
        object: &CachedFile,
        place: &mut Option<Header>,
        FileVersion { change, size }: FileVersion,
    ) -> Epoch {
        let epoch = self.random.hash_one(self.next());
        let had_pages = place.as_ref().is_some_and(|header| header.present > 0);
        self.note_pages(place.as_ref().map_or(0, |header| header.present), 0);
        let used_seconds = self.seconds();
        let is_pinned = place.as_ref().is_some_and(|header| header.is_pinned);
        let header =
            Header { file: *file, epoch, change, size, present: 0, used_seconds, is_pinned };
        *place = Some(header);
        object.is_new.store(true, Ordering::Relaxed);
        object.is_carried.store(false, Ordering::Relaxed);
        if had_pages {
            self.health.note(self.medium.truncate(&object.paths.map, 0));
            self.health.note(self.medium.truncate(&object.paths.data, 0));
        }
        object.epoch(&header)
    }

    /// Returns a number that was not returned before.
    fn next(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Reads cached pages from the start of `range`, which must be the start of a page, up to the
    /// first missing one and up to one transfer; appends them to `bytes`.
    pub(crate) fn read(
        &self,
        file: &FileName,
        epoch: Epoch,
        range: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> PageRun {
        let object = self.object(file);
        let header = object.read();
        let Some(header) = header.as_ref().filter(|header| header.epoch == epoch.number) else {
            return PageRun::Miss(range.end - range.start);
        };
        if range.start >= header.size {
            // The file was cut since the caller has seen its length.
            return PageRun::Miss(range.end - range.start);
        }
        let most = range.start.saturating_add(TRANSFER_BYTES_MAX).min(header.size);
        let range = range.start..range.end.min(most).max(range.start);
        let sums = self.checksums(&object.paths, pages(&range));
        let is_there = sums.first().is_some_and(|sum| *sum != 0);
        let alike = sums.iter().take_while(|sum| (**sum != 0) == is_there).count() as u64;
        let end = (range.start + alike * PAGE_BYTES).min(range.end);
        if !is_there {
            return PageRun::Miss(end - range.start);
        }
        self.read_present(&object.paths, header, (range.start..end, &sums), bytes)
    }

    /// Reads pages that have checksums, up to the first that is damaged.
    fn read_present(
        &self,
        paths: &Paths,
        header: &Header,
        (range, sums): (Range<u64>, &[u64]),
        bytes: &mut Vec<u8>,
    ) -> PageRun {
        let before = bytes.len();
        bytes.resize(before + (pages(&range).end * PAGE_BYTES - range.start) as usize, 0);
        let data = bytes.get_mut(before..).unwrap_or_default();
        let read = self.health.note(self.medium.read(&paths.data, range.start, data)).unwrap_or(0);
        let data = data.get(..read).unwrap_or_default();
        let mut good = 0;
        for (page, sum) in pages(&range).zip(sums) {
            let whole = page_range(page, header.size);
            let end = good + (whole.end - whole.start) as usize;
            let content = data.get(good..end);
            if content.is_none_or(|content| checksum(header.epoch, page, content) != *sum) {
                self.health.note_damage();
                break;
            }
            good = end;
        }
        let wanted = (range.end - range.start) as usize;
        bytes.truncate(before + good.min(wanted));
        match (bytes.len() - before) as u64 {
            0 => PageRun::Miss(page_range(range.start / PAGE_BYTES, range.end).end - range.start),
            count => PageRun::Hit(count),
        }
    }

    /// The first missing range of a file; `None` if it is complete. A damaged page counts as
    /// present until it is read.
    pub(crate) fn first_missing(&self, file: &FileName, epoch: Epoch) -> Option<Range<u64>> {
        let object = self.object(file);
        let header = object.read();
        let header = header.as_ref().filter(|header| header.epoch == epoch.number)?;
        let total = header.size.div_ceil(PAGE_BYTES);
        for first in (0..total).step_by(TABLE_STEP as usize) {
            let sums = self.checksums(&object.paths, first..total.min(first + TABLE_STEP));
            let Some(at) = sums.iter().position(|sum| *sum == 0) else { continue };
            let length = sums.iter().skip(at).take_while(|sum| **sum == 0).count() as u64;
            let start = (first + at as u64) * PAGE_BYTES;
            return Some(start..(start + length * PAGE_BYTES).min(header.size));
        }
        None
    }

    /// Number of missing pages; an estimate.
    pub(crate) fn missing(&self, file: &FileName) -> u64 {
        let object = self.object(file);
        let header = object.read();
        let total = |header: &Header| header.size.div_ceil(PAGE_BYTES);
        let missing = |header: &Header| total(header).saturating_sub(header.present);
        header.as_ref().map_or(0, missing)
    }

    /// Stores fetched pages of a file, from the start of a page on; only the last page of the file
    /// may be shorter. Does nothing if the epoch has ended or the file was changed here since: the
    /// data may be out of date.
    pub(crate) fn fill(&self, file: &FileName, epoch: Epoch, start: u64, data: &[u8]) {
        self.put(file, start, data, |now| now == epoch);
    }

    /// Stores pages; returns whether that was done.
    fn put(
        &self,
        file: &FileName,
        start: u64,
        data: &[u8],
        is_good: impl Fn(Epoch) -> bool,
    ) -> bool {
        if !self.health.is_usable() || data.is_empty() {
            return false;
        }
        let object = self.object(file);
        let mut place = object.write();
        let Some(header) = place.as_mut().filter(|header| is_good(object.epoch(header))) else {
            return false;
        };
        let is_stored = self.fill_locked(&object.paths, header, start, data);
        if is_stored {
            self.note_use(header);
            // Only a new epoch's header may be written at once. Another header must wait until the
            // table is stable, because it could make stale entries of the table valid.
            if object.is_new.swap(false, Ordering::Relaxed) {
                self.write_header(&object.paths, header);
            }
        }
        is_stored
    }

    /// Returns whether the time of the last use must be updated.
    fn is_use_old(&self, header: &Header) -> bool {
        self.seconds().saturating_sub(header.used_seconds) > USE_GRAIN_SECONDS
    }

    fn note_use(&self, header: &mut Header) {
        if self.is_use_old(header) {
            header.used_seconds = self.seconds();
            self.save_later(&header.file);
        }
    }

    fn save_later(&self, file: &FileName) {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner).insert(*file);
    }

    /// Stores pages, with the header locked; returns whether any were stored.
    fn fill_locked(&self, paths: &Paths, header: &mut Header, start: u64, data: &[u8]) -> bool {
        let range = start..(start + data.len() as u64).min(header.size);
        let mut sums = Vec::new();
        for page in pages(&range) {
            let whole = page_range(page, header.size);
            let at = (whole.start - start) as usize;
            // The data may end in the middle of a page.
            let Some(content) = data.get(at..at + (whole.end - whole.start) as usize) else {
                break;
            };
            sums.push(checksum(header.epoch, page, content));
        }
        let Some(end) = sums.len().checked_sub(1) else { return false };
        let length = page_range(start / PAGE_BYTES + end as u64, header.size).end - start;
        let content = data.get(..length as usize).unwrap_or(data);
        if self.health.note(self.medium.write(&paths.data, start, content)).is_none() {
            return false;
        }
        // A page whose checksum could not be stored does not match the old one.
        self.set_checksums(paths, start / PAGE_BYTES, &sums);
        let total = header.size.div_ceil(PAGE_BYTES);
        let before = header.present;
        header.present = (before + sums.len() as u64).min(total);
        self.note_pages(before, header.present);
        true
    }

    /// Keeps the pages valid across a change that was made through this cache and by no other
    /// client: except for the written bytes, the new version has the pages of the old one.
    pub(crate) fn carry(&self, file: &FileName, before: u64, after: FileVersion) -> Option<Epoch> {
        let object = self.object(file);
        let mut place = object.write();
        let header = place.as_mut().filter(|header| header.change == before)?;
        let mut is_cut = true;
        if header.size != after.size {
            is_cut = self.resize_last(&object.paths, header, after.size);
        }
        if after.size < header.size {
            let total = after.size.div_ceil(PAGE_BYTES);
            is_cut &= self.cut_checksums(&object.paths, total);
            self.note_pages(header.present, header.present.min(total));
            header.present = header.present.min(total);
            self.health.note(self.medium.truncate(&object.paths.data, after.size));
        }
        if !is_cut {
            return Some(self.begin(file, &object, &mut place, after));
        }
        header.change = after.change;
        header.size = after.size;
        object.is_carried.store(true, Ordering::Relaxed);
        object.edit.store(self.next(), Ordering::Relaxed);
        self.save_later(file);
        Some(object.epoch(header))
    }

    /// Adjusts the page at the old or new end of a file, whose length changes: it is cut or
    /// extended with zeros, as the file is. Returns false if its checksum could not be changed.
    fn resize_last(&self, paths: &Paths, header: &Header, size: u64) -> bool {
        let kept = header.size.min(size);
        if kept.is_multiple_of(PAGE_BYTES) {
            return true;
        }
        let page = kept / PAGE_BYTES;
        let (old, new) = (page_range(page, header.size), page_range(page, size));
        let sums = self.checksums(paths, page..page + 1);
        let mut content = Vec::new();
        let known = self.read_present(paths, header, (old.clone(), &sums), &mut content);
        let mut sum = 0;
        if known == PageRun::Hit(old.end - old.start) {
            content.resize((new.end - new.start) as usize, 0);
            sum = checksum(header.epoch, page, &content);
            self.health.note(self.medium.write(&paths.data, new.start, &content));
        }
        self.set_checksums(paths, page, &[sum])
    }

    /// Writes the headers of changed files. Their tables are made stable first: the new header
    /// beside an old entry of the table would make a stale page valid.
    pub(crate) fn save(&self) {
        let unsaved =
            std::mem::take(&mut *self.unsaved.lock().unwrap_or_else(PoisonError::into_inner));
        for file in unsaved {
            let object = self.object(&file);
            let header = object.write();
            if object.changes.load(Ordering::SeqCst) > 0 {
                self.save_later(&file);
                continue;
            }
            let Some(header) = header.as_ref().filter(|_| self.health.is_usable()) else {
                continue;
            };
            if self.health.note(self.medium.sync(&object.paths.map)).is_some() {
                self.write_header(&object.paths, header);
            }
        }
    }

    /// Writes data into cached pages: whole pages are stored, and parts if the page is cached.
    pub(crate) fn overwrite(&self, file: &FileName, epoch: Epoch, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        for page in pages(&(offset..end)) {
            let whole = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
            let (from, to) = (offset.max(whole.start), end.min(whole.end));
            let part = data.get((from - offset) as usize..(to - offset) as usize);
            let part = part.unwrap_or_default();
            self.overwrite_page(file, epoch, whole, (from, part));
        }
    }

    fn overwrite_page(
        &self,
        file: &FileName,
        epoch: Epoch,
        whole: Range<u64>,
        (from, part): (u64, &[u8]),
    ) {
        let size = self.version(file).map_or(0, |version| version.size);
        let length = whole.end.min(size).saturating_sub(whole.start) as usize;
        let at = (from - whole.start) as usize;
        let put = |content: &[u8]| {
            // A page that could not be written would show the old data.
            if !self.put(file, whole.start, content, |now| now.number == epoch.number) {
                self.restart(file);
            }
        };
        if at == 0 && part.len() >= length {
            return put(part);
        }
        let mut content = Vec::new();
        let known = self.read(file, epoch, whole.start..whole.start + length as u64, &mut content);
        match (known, content.get_mut(at..at + part.len())) {
            (PageRun::Hit(count), Some(place)) if count as usize == length => {
                place.copy_from_slice(part);
                put(&content);
            }
            _ => self.drop_pages(file, &whole),
        }
    }

    /// Drops pages of a file that a failed write may have changed.
    pub(crate) fn drop_pages(&self, file: &FileName, range: &Range<u64>) {
        let object = self.object(file);
        let mut place = object.write();
        object.edit.store(self.next(), Ordering::Relaxed);
        let Some(Header { change, size, .. }) = *place else { return };
        let (pages, total) = (pages(range), size.div_ceil(PAGE_BYTES));
        let are_dropped = match pages.end < total {
            true => self.clear_checksums(&object.paths, pages),
            false => self.cut_checksums(&object.paths, pages.start),
        };
        if !are_dropped {
            self.begin(file, &object, &mut place, FileVersion { change, size });
        }
    }

    /// Drops all pages of a file whose data was replaced, also those that are being fetched.
    pub(crate) fn restart(&self, file: &FileName) {
        let object = self.object(file);
        let mut header = object.write();
        if let Some(Header { change, size, .. }) = *header {
            self.begin(file, &object, &mut header, FileVersion { change, size });
        }
    }

    /// Drops the pages of a file that were kept across an own change, as far as it is known:
    /// another client may have changed them at the same moment, and its change was not seen.
    pub(crate) fn restart_if_carried(&self, file: &FileName) {
        if self.object(file).is_carried.load(Ordering::Relaxed) {
            self.restart(file);
        }
    }

    /// Removes a file from the cache; returns the bytes freed.
    pub(crate) fn evict(&self, file: &FileName) -> u64 {
        let object = self.object(file);
        let mut header = object.write();
        let known = header.take();
        self.note_pages(known.map_or(0, |header| header.present), 0);
        self.remove_objects(&object.paths)
    }

    fn note_pages(&self, before: u64, after: u64) {
        let bytes = after.wrapping_sub(before).wrapping_mul(PAGE_BYTES);
        self.drift.fetch_add(bytes.cast_signed(), Ordering::Relaxed);
    }

    /// Bytes of all files now, estimated from the number that the cleaner counted.
    pub(crate) fn bytes_since(&self, counted: u64) -> u64 {
        counted.saturating_add_signed(self.drift.load(Ordering::Relaxed))
    }

    /// Resets the estimate after the cleaner has counted all files.
    pub(crate) fn forget_drift(&self) {
        self.drift.store(0, Ordering::Relaxed);
    }

    /// Removes the objects of a file that is not in use; returns the bytes freed.
    pub(crate) fn remove_objects(&self, paths: &Paths) -> u64 {
        let used = self.used(paths);
        // Remove the map first: without it the data is not used.
        self.health.note(self.medium.remove(&paths.map));
        self.health.note(self.medium.remove(&paths.data));
        used
    }

    /// Reads the header of a map on the disk.
    pub(crate) fn load(&self, paths: &Paths) -> Option<Header> {
        let mut bytes = [0; HEADER_BYTES];
        let read = self.health.note(self.medium.read(&paths.map, 0, &mut bytes))?;
        Header::decode(bytes.get(..read)?)
    }

    fn write_header(&self, paths: &Paths, header: &Header) {
        if self.health.is_usable() {
            self.health.note(self.medium.write(&paths.map, 0, &header.encode()));
        }
    }

    /// The names in a folder of the disk; none after a failure.
    pub(crate) fn list(&self, folder: &str) -> Vec<String> {
        self.health.note(self.medium.list(folder)).unwrap_or_default()
    }

    /// The bytes that a file occupies on the disk.
    pub(crate) fn used(&self, paths: &Paths) -> u64 {
        [&paths.map, &paths.data].map(|path| self.medium.used(path).unwrap_or(0)).iter().sum()
    }

    /// The free bytes of the disk; `u64::MAX` if that is unknown.
    pub(crate) fn free(&self) -> u64 {
        self.medium.free().unwrap_or(u64::MAX)
    }

    /// Seconds since 1970.
    pub(crate) fn seconds(&self) -> u64 {
        (self.clock)() / 1_000
    }

    fn object(&self, file: &FileName) -> Arc<CachedFile> {
        let load = || {
            let paths = file.paths();
            let header = self.load(&paths).filter(|header| header.file == *file);
            Ok::<_, std::convert::Infallible>(Arc::new(CachedFile {
                paths,
                header: RwLock::new(header),
                edit: AtomicU64::new(self.next()),
                is_new: AtomicBool::new(false),
                changes: AtomicU32::new(0),
                is_carried: AtomicBool::new(true),
            }))
        };
        match self.objects.get_or_insert_with(file, load) {
            Ok(object) => object,
            Err(never) => match never {},
        }
    }
}

fn is_of(header: &Header, version: FileVersion) -> bool {
    header.change == version.change && header.size == version.size
}

#[cfg(test)]
mod tests;

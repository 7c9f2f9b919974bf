//! Data: cached pages are read from the cache disk, other pages from the file system below.

use std::ops::Range;

use comity_vfs::{Attr, Cred, Data, Disk, FileType, Handle, Read, ReadInto, Result, Written};

use super::Cache;
use super::attributes::version;
use crate::counters::count;
use crate::limits::{PAGE_BYTES, READ_TRIES, TRANSFER_BYTES_MAX};
use crate::page_store::{Epoch, PageRun};

/// A read of one version of a file.
pub(super) struct CachedRead<'a> {
    pub(super) cred: &'a Cred<Disk>,
    pub(super) node: &'a Handle,
    pub(super) attr: Attr<Disk>,
    pub(super) epoch: Epoch,
    pub(super) opened: bool,
}

impl Cache {
    pub(super) fn read_cached(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        (offset, count): (u64, u32),
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        let judged = into.opened || self.may_read(cred, node)?;
        for _ in 0..READ_TRIES {
            // Take the unsent data before the attributes: data that is sent in between is then
            // applied twice instead of never.
            let waiting = self.waiting(node, offset, count);
            let waits = self.waits(node);
            let attr = self.attr(node)?;
            if !judged || attr.file_type != FileType::Regular {
                break;
            }
            let epoch = self.store.enter(&self.file(node), version(&attr));
            let reading = CachedRead { cred, node, attr, epoch, opened: into.opened };
            let shown = self.shown_with(node, attr, waits);
            let range = offset.min(shown.size)..offset.saturating_add(count.into()).min(shown.size);
            let before = into.bytes.len();
            let below = range.start.min(attr.size)..range.end.min(attr.size);
            if self.read_range(&reading, below, into.bytes)? {
                let length = (range.end - range.start) as usize;
                into.bytes.resize(before + length, 0);
                for (at, data) in &waiting {
                    let from = (at - offset) as usize + before;
                    if let Some(place) = into.bytes.get_mut(from..) {
                        place.iter_mut().zip(data).for_each(|(place, byte)| *place = *byte);
                    }
                }
                let (data, eof) = (Data::Appended(length as u32), range.end >= shown.size);
                return Ok(Read { data, eof, attr: Some(shown) });
            }
            // Another client has changed the file in between.
            into.bytes.truncate(before);
        }
        self.flush(node)?;
        self.fs.read(cred, node, offset, count, into)
    }

    /// The unsent data of a range, in the order in which it must be applied.
    fn waiting(&self, node: &Handle, offset: u64, count: u32) -> Vec<(u64, Vec<u8>)> {
        let Some(file) = self.dirty.get(node) else { return Vec::new() };
        let state = file.lock();
        let range = offset..offset.saturating_add(count.into());
        let mut found = state.sending.within(&range);
        found.extend(state.waiting.within(&range));
        found
    }

    /// Appends the bytes of a range; returns false if the file has changed meanwhile.
    fn read_range(
        &self,
        reading: &CachedRead<'_>,
        range: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<bool> {
        let (start, wanted) = (bytes.len(), (range.end - range.start) as usize);
        // Whole pages are read, and the bytes before the range are removed at the end.
        let first = range.start / PAGE_BYTES * PAGE_BYTES;
        let mut at = first;
        while at < range.end {
            let before = bytes.len() as u64;
            match self.store.read(&self.file(reading.node), reading.epoch, at..range.end, bytes) {
                PageRun::Hit(length) => count(&self.counters.hit_bytes, length),
                PageRun::Miss(length) => {
                    if !self.fetch(reading, at..at + length, bytes)? {
                        return Ok(false);
                    }
                    let missing = self.store.missing(&self.file(reading.node));
                    self.filler.note(reading, missing, self.now());
                }
            }
            if bytes.len() as u64 == before {
                // The file was cut since its attributes were known.
                return Ok(false);
            }
            at += bytes.len() as u64 - before;
        }
        bytes.drain(start..start + (range.start - first) as usize);
        bytes.truncate(start + wanted);
        Ok(bytes.len() == start + wanted)
    }

    /// Reads whole pages from the file system below and caches them; returns false if another
    /// client has changed the file.
    pub(super) fn fetch(
        &self,
        reading: &CachedRead<'_>,
        range: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<bool> {
        let CachedRead { cred, node, attr, epoch, opened } = *reading;
        let before = bytes.len();
        let end = range.end.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES).min(attr.size);
        let end = end.min(range.start + TRANSFER_BYTES_MAX);
        while (bytes.len() - before) < (end - range.start) as usize {
            let at = range.start + (bytes.len() - before) as u64;
            let mut into = ReadInto { opened, ..ReadInto::new(bytes) };
            let asked = self.attributes.ask();
            let read = self.fs.read(cred, node, at, (end - at) as u32, &mut into)?;
            let other = read.attr.filter(|after| after.change != attr.change);
            if let Some(after) = other {
                self.note(node, after, asked);
                return Ok(false);
            }
            if read.data.length() == 0 {
                // The file is shorter than its cached attributes say.
                self.attributes.expire(node);
                return Ok(false);
            }
        }
        let data = bytes.get(before..).unwrap_or_default();
        count(&self.counters.miss_bytes, data.len() as u64);
        if self.options.fills {
            self.store.fill(&self.file(node), epoch, range.start, data);
        }
        Ok(true)
    }

    /// Writes to the file system below at once.
    pub(super) fn write_through(
        &self,
        node: &Handle,
        offset: u64,
        data: &[u8],
        write: impl FnOnce() -> Result<Written<Disk>>,
    ) -> Result<Written<Disk>> {
        let is_true = self.is_true(node);
        let known = self.attributes.last(node);
        let asked = self.attributes.ask();
        let written = write().inspect_err(|_| {
            // The write may have been made although it failed.
            self.store
                .drop_pages(&self.file(node), &(offset..offset.saturating_add(data.len() as u64)));
            self.attributes.expire(node);
        })?;
        let data = data.get(..written.value as usize).unwrap_or(data);
        let (file, change) = (self.file(node), written.change);
        let before = match change.before {
            None if is_true => known.map(|known| known.change),
            before => before.map(|attr| attr.change),
        };
        let after = change.after.map(|attr| version(&attr));
        let _change = self.store.begin_change(&file);
        let epoch = match (before, after) {
            (Some(before), Some(after)) => {
                self.marks.carried(node, before, after.change);
                let carried = self.store.carry(&file, before, after);
                // Without cached pages of the version before, the written ones are the first.
                carried.or_else(|| self.options.fills.then(|| self.store.enter(&file, after)))
            }
            _ => None,
        };
        match epoch {
            Some(epoch) => self.store.overwrite(&file, epoch, offset, data),
            None => self.store.drop_pages(&file, &(offset..offset + data.len() as u64)),
        }
        self.attributes.note_own(node, (before, change.after), asked, self.now());
        Ok(written)
    }
}

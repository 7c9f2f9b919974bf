use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use comity_vfs::{Result, Seek, Status};

use super::limits::PAGE_BYTES;
use super::space::Charge;

/// A page, which cloned files share until one of them writes.
type Page = Arc<[u8; PAGE_BYTES as usize]>;

/// A regular file's data: pages with data, and holes between them.
///
/// Bytes of a page after the end of the file are always zero, so that growing the file shows zeros
/// without a change of a page.
#[derive(Debug, Default)]
pub(super) struct Content {
    size: u64,
    pages: BTreeMap<u64, Page>,
}

/// Pages that a file shares with another.
pub(super) struct Shared {
    pages: Vec<(u64, Page)>,
    length: u64,
}

impl Content {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn used(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }

    /// Appends the data of `count` bytes at `offset` to `into`, and returns the number of bytes.
    pub(super) fn read(&self, offset: u64, count: u32, into: &mut Vec<u8>) -> u32 {
        let end = offset.saturating_add(u64::from(count)).min(self.size);
        if offset >= end {
            return 0;
        }
        let mut at = offset;
        for (&number, page) in self.pages.range(pages_of(offset..end)) {
            let start = number * PAGE_BYTES;
            let from = at.max(start);
            let until = end.min(start + PAGE_BYTES);
            into.resize(into.len() + (from - at) as usize, 0);
            into.extend_from_slice(&page[(from - start) as usize..(until - start) as usize]);
            at = until;
        }
        into.resize(into.len() + (end - at) as usize, 0);
        (end - offset) as u32
    }

    /// Writes as much of `data` as there is space for; [`Status::NoSpc`] if there is none at all.
    /// The caller has checked that the end does not exceed the largest file size.
    pub(super) fn write(&mut self, charge: &mut Charge, offset: u64, data: &[u8]) -> Result<u32> {
        let mut written = 0;
        while written < data.len() {
            let at = offset + written as u64;
            let inside = (at % PAGE_BYTES) as usize;
            let length = (data.len() - written).min(PAGE_BYTES as usize - inside);
            match self.page(charge, at / PAGE_BYTES) {
                Ok(page) => {
                    page[inside..inside + length].copy_from_slice(&data[written..written + length])
                }
                Err(full) if written == 0 => return Err(full),
                Err(_) => break,
            }
            written += length;
        }
        self.size = self.size.max(offset + written as u64);
        Ok(written as u32)
    }

    /// Truncates the file, or extends it by a hole.
    pub(super) fn set_size(&mut self, charge: &mut Charge, size: u64) {
        if size < self.size {
            self.punch(charge, size..u64::MAX);
        }
        self.size = size;
    }

    /// Turns the range into a hole; the size does not change.
    pub(super) fn punch(&mut self, charge: &mut Charge, range: Range<u64>) {
        let first_whole = range.start.div_ceil(PAGE_BYTES);
        let behind_whole = if range.end == u64::MAX { u64::MAX } else { range.end / PAGE_BYTES };
        self.zero_part(range.start..range.end.min(first_whole.saturating_mul(PAGE_BYTES)));
        self.zero_part(range.start.max(behind_whole.saturating_mul(PAGE_BYTES))..range.end);
        if first_whole >= behind_whole {
            return;
        }
        let whole: Vec<u64> =
            self.pages.range(first_whole..behind_whole).map(|(number, _)| *number).collect();
        for number in &whole {
            self.pages.remove(number);
        }
        charge.shrink(whole.len() as u64 * PAGE_BYTES);
    }

    /// Allocates pages for the range, all or none, and extends the file to its end.
    pub(super) fn allocate(&mut self, charge: &mut Charge, range: Range<u64>) -> Result<()> {
        let numbers = pages_of(range.clone());
        let present = self.pages.range(numbers.clone()).count() as u64;
        let missing = (numbers.end - numbers.start).saturating_sub(present);
        charge.grow(missing.checked_mul(PAGE_BYTES).ok_or(Status::NoSpc)?)?;
        for number in numbers {
            self.pages.entry(number).or_insert_with(zeros);
        }
        self.size = self.size.max(range.end);
        Ok(())
    }

    /// Returns the pages of a range, each with its distance in pages from the range's beginning.
    pub(super) fn share(&self, range: Range<u64>) -> Shared {
        let first = range.start / PAGE_BYTES;
        let pages = self.pages.range(pages_of(range.clone()));
        let pages = pages.map(|(number, page)| (number - first, Arc::clone(page))).collect();
        Shared { pages, length: range.end - range.start }
    }

    /// Replaces the content from `at`, the beginning of a page, by the shared pages of another
    /// file. If the space is short, nothing changes. Space is charged as if the pages belonged to
    /// this file alone.
    pub(super) fn adopt(&mut self, charge: &mut Charge, at: u64, shared: Shared) -> Result<()> {
        let range = at..at + shared.length;
        let present: Vec<u64> =
            self.pages.range(pages_of(range.clone())).map(|(number, _)| *number).collect();
        let (old, new) = (present.len() as u64, shared.pages.len() as u64);
        charge.grow(new.saturating_sub(old) * PAGE_BYTES)?;
        for number in &present {
            self.pages.remove(number);
        }
        charge.shrink(old.saturating_sub(new) * PAGE_BYTES);
        let first = at / PAGE_BYTES;
        let pages = shared.pages.into_iter().map(|(distance, page)| (first + distance, page));
        self.pages.extend(pages);
        self.size = self.size.max(range.end);
        Ok(())
    }

    /// Returns the next data or hole at or after `offset`; there is a hole at the end of every
    /// file.
    pub(super) fn seek(&self, offset: u64, what: Seek) -> Option<u64> {
        if offset >= self.size {
            return None;
        }
        let mut pages = self.pages.range(offset / PAGE_BYTES..).map(|(number, _)| *number);
        let found = match what {
            Seek::Data => pages.next()?.saturating_mul(PAGE_BYTES).max(offset),
            Seek::Hole => {
                let first = offset / PAGE_BYTES;
                let run = pages.zip(first..).take_while(|(number, next)| number == next).count();
                (first + run as u64).saturating_mul(PAGE_BYTES).max(offset).min(self.size)
            }
        };
        (what == Seek::Hole || found < self.size).then_some(found)
    }

    fn page(&mut self, charge: &mut Charge, number: u64) -> Result<&mut [u8; PAGE_BYTES as usize]> {
        if !self.pages.contains_key(&number) {
            charge.grow(PAGE_BYTES)?;
        }
        Ok(Arc::make_mut(self.pages.entry(number).or_insert_with(zeros)))
    }

    /// Zeros a range that lies within one page.
    fn zero_part(&mut self, range: Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let number = range.start / PAGE_BYTES;
        if let Some(page) = self.pages.get_mut(&number) {
            let start = (range.start % PAGE_BYTES) as usize;
            let length = (range.end - range.start).min(PAGE_BYTES - start as u64) as usize;
            Arc::make_mut(page)[start..start + length].fill(0);
        }
    }
}

fn zeros() -> Page {
    Arc::new([0; PAGE_BYTES as usize])
}

/// Returns the numbers of the pages that overlap the range.
fn pages_of(range: Range<u64>) -> Range<u64> {
    range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
}

#[cfg(test)]
mod tests;

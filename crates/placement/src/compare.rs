//! The comparison of the bytes of a file's good mirrors. It changes nothing.

use std::time::Instant;

use comity_vfs::{ComparedRange, DifferingRange, Handle, Result, Status};

use crate::holds::Use;
use crate::limits::{CHECK_TIME_MAX, COMPARED_BYTES, COPY_BYTES, DIFFERING_MAX};
use crate::placed::Placed;
use crate::record::{PlaceRecord, Spread};

/// A part of a file as one of its mirrors has it.
struct MirrorPart {
    /// The number of the mirror.
    at: usize,
    bytes: Vec<u8>,
}

/// A part of a file as its mirrors have it, and the mirrors that could not be read.
struct FilePart {
    offset: u64,
    mirrors: Vec<MirrorPart>,
    unread: Vec<(usize, Status)>,
}

/// The numbers of mirrors; those that have the same bytes are together.
type Groups = Vec<Vec<usize>>;

impl Placed {
    /// Compares a range (offset, length) of the good mirrors of a file; see
    /// [`comity_vfs::Placement::compare`].
    pub(crate) fn compare_mirrors(
        &self,
        file: &Handle,
        (offset, length): (u64, u64),
    ) -> Result<Option<ComparedRange>> {
        let Some(using) = self.using(file, Use::Look)? else { return Ok(None) };
        let record = &*using.record;
        if !matches!(record.spread, Spread::Mirrors(_)) || record.whole().count() < 2 {
            return Ok(None);
        }
        let (begun, attr) = (Instant::now(), self.below.getattr(file)?);
        let end = attr.size.min(offset.saturating_add(length));
        let (differing, unread) = (Vec::new(), Vec::new());
        let change = attr.change;
        let mut compared = ComparedRange { differing, unread, bytes: 0, next: None, change };
        let mut at = offset;
        while at < end {
            let length = (end - at).min(COPY_BYTES);
            self.compare_part((file, record), (at, length), &mut compared);
            (at, compared.bytes) = (at + length, compared.bytes + length);
            if compared.differing.len() >= DIFFERING_MAX || begun.elapsed() > CHECK_TIME_MAX {
                break;
            }
        }
        compared.next = (at < end).then_some(at);
        Ok(Some(compared))
    }

    /// Compares a part of a file that fits into memory once for each mirror.
    fn compare_part(
        &self,
        (file, record): (&Handle, &PlaceRecord),
        range: (u64, u64),
        compared: &mut ComparedRange,
    ) {
        let mut part = self.read_part(record, range);
        if !part.is_equal() {
            // A write through this server reaches all mirrors while it has this lock.
            let _order = self.known.lock_mirrors(file);
            part = self.read_part(record, range);
        }
        let name = |at: usize| record.servers.get(at).cloned().unwrap_or_default();
        for (at, status) in &part.unread {
            if compared.unread.iter().all(|(known, _)| *known != name(*at)) {
                compared.unread.push((name(*at), *status));
            }
        }
        let named = |group: Vec<usize>| group.into_iter().map(name).collect();
        compared.differing.extend(part.differing().into_iter().map(|(offset, length, groups)| {
            DifferingRange { offset, length, groups: groups.into_iter().map(named).collect() }
        }));
    }

    /// Reads a range of all good mirrors. A mirror without a data file has no bytes.
    fn read_part(&self, record: &PlaceRecord, range: (u64, u64)) -> FilePart {
        let mut part = FilePart { offset: range.0, mirrors: Vec::new(), unread: Vec::new() };
        for at in record.whole() {
            match self.files.read_one((record, at), range) {
                Ok(read) => part.mirrors.push(MirrorPart { at, bytes: read.unwrap_or_default() }),
                Err(status) => part.unread.push((at, status)),
            }
        }
        part
    }
}

impl FilePart {
    fn is_equal(&self) -> bool {
        self.mirrors.windows(2).all(|two| match two {
            [one, other] => one.bytes == other.bytes,
            _ => true,
        })
    }

    /// Returns the ranges (offset, length) that differ, with the mirrors.
    fn differing(&self) -> Vec<(u64, u64, Groups)> {
        let mut found: Vec<(usize, usize, Groups)> = Vec::new();
        let length = self.mirrors.iter().map(|it| it.bytes.len()).max().unwrap_or(0);
        for begin in (0..length).step_by(COMPARED_BYTES) {
            let end = length.min(begin + COMPARED_BYTES);
            let groups = self.groups(begin, end);
            match found.last_mut() {
                _ if groups.len() < 2 => {}
                Some((_, last, same)) if *last == begin && *same == groups => *last = end,
                _ => found.push((begin, end, groups)),
            }
        }
        let exact = |(begin, end, groups): (usize, usize, Groups)| {
            let (begin, end) = self.trimmed((begin, end), &groups);
            (self.offset + begin as u64, (end - begin) as u64, groups)
        };
        found.into_iter().map(exact).collect()
    }

    /// Groups the mirrors that have all of a range by their bytes. One that is too short is left
    /// out: a check names it as lost.
    fn groups(&self, begin: usize, end: usize) -> Groups {
        let mut groups: Vec<(&[u8], Vec<usize>)> = Vec::new();
        for MirrorPart { at, bytes } in &self.mirrors {
            let Some(bytes) = bytes.get(begin..end) else { continue };
            match groups.iter_mut().find(|(known, _)| *known == bytes) {
                Some((_, mirrors)) => mirrors.push(*at),
                None => groups.push((bytes, vec![*at])),
            }
        }
        groups.into_iter().map(|(_, mirrors)| mirrors).collect()
    }

    /// Returns the part of a range from its first byte that differs to its last one.
    fn trimmed(&self, (begin, end): (usize, usize), groups: &Groups) -> (usize, usize) {
        let firsts = groups.iter().filter_map(|group| group.first());
        let bytes_of = |at: &usize| self.mirrors.iter().find(|it| it.at == *at);
        let parts: Vec<&[u8]> =
            firsts.filter_map(|at| bytes_of(at)?.bytes.get(begin..end)).collect();
        let differs = |at: &usize| {
            parts
                .windows(2)
                .any(|two| two.first().map(|it| it.get(*at)) != two.last().map(|it| it.get(*at)))
        };
        let (first, last) = ((0..end - begin).find(differs), (0..end - begin).rfind(differs));
        (begin + first.unwrap_or(0), last.map_or(end, |last| begin + last + 1))
    }
}

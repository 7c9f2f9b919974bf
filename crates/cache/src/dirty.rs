//! The unsent data of one file.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::limits::TRANSFER_BYTES_MAX;

/// Pieces of data by offset. Pieces that overlap or touch are merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extents {
    pieces: BTreeMap<u64, Vec<u8>>,
    bytes: u64,
}

impl Extents {
    /// Returns whether the data is a single piece that one call can carry.
    pub(crate) fn is_one_call(&self) -> bool {
        self.pieces.len() == 1 && self.bytes <= TRANSFER_BYTES_MAX
    }

    /// Stores data, over what is there.
    pub(crate) fn put(&mut self, offset: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        // The common case: a write that continues the last piece.
        if let Some(mut last) = self.pieces.last_entry()
            && *last.key() + last.get().len() as u64 == offset
        {
            last.get_mut().extend_from_slice(data);
            self.bytes += data.len() as u64;
            return;
        }
        let end = offset + data.len() as u64;
        let (mut start, mut merged) = (offset, Vec::new());
        for (at, piece) in self.take_touching(offset..end) {
            let piece_end = at + piece.len() as u64;
            if at < offset {
                start = at;
                merged.extend_from_slice(piece.get(..(offset - at) as usize).unwrap_or_default());
            }
            if merged.is_empty() || (start + merged.len() as u64) == offset {
                merged.extend_from_slice(data);
            }
            if piece_end > end {
                let behind = (end - at) as usize;
                merged.extend_from_slice(piece.get(behind..).unwrap_or_default());
            }
        }
        if merged.is_empty() {
            merged.extend_from_slice(data);
        }
        self.bytes += merged.len() as u64;
        self.pieces.insert(start, merged);
    }

    /// Removes and returns the pieces that overlap or touch a range.
    fn take_touching(&mut self, range: Range<u64>) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        for (at, piece) in self.pieces.range(..=range.end).rev() {
            if at + (piece.len() as u64) < range.start {
                break;
            }
            found.push(*at);
        }
        let mut taken: Vec<_> =
            found.into_iter().filter_map(|at| self.pieces.remove_entry(&at)).collect();
        self.bytes -= taken.iter().map(|(_, piece)| piece.len() as u64).sum::<u64>();
        taken.reverse();
        taken
    }

    /// The data of a range, in pieces.
    pub(crate) fn within(&self, range: &Range<u64>) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        for (at, piece) in self.pieces.range(..range.end).rev() {
            let piece_end = at + piece.len() as u64;
            if piece_end <= range.start {
                break;
            }
            let (from, to) = (range.start.max(*at), range.end.min(piece_end));
            let content = piece.get((from - at) as usize..(to - at) as usize);
            found.extend(content.map(|content| (from, content.to_vec())));
        }
        found
    }

    /// The end of the last piece.
    pub(crate) fn end(&self) -> u64 {
        self.pieces.last_key_value().map_or(0, |(at, piece)| at + piece.len() as u64)
    }

    /// The number of bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The pieces in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.pieces.iter().map(|(at, piece)| (*at, piece.as_slice()))
    }

    /// Stores the pieces of `newer` over these.
    pub(crate) fn put_all(&mut self, newer: &Self) {
        newer.iter().for_each(|(at, piece)| self.put(at, piece));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(extents: &Extents, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        for (at, data) in extents.within(&range) {
            bytes[(at - range.start) as usize..][..data.len()].copy_from_slice(&data);
        }
        bytes
    }

    fn pieces(extents: &Extents) -> Vec<(u64, usize)> {
        extents.iter().map(|(at, piece)| (at, piece.len())).collect()
    }

    #[test]
    fn small_appends_become_one_piece() {
        let mut extents = Extents::default();
        (0..1000).for_each(|number| extents.put(number * 10, &[1; 10]));
        assert_eq!(pieces(&extents), [(0, 10_000)]);
    }

    #[test]
    fn a_piece_may_cover_several() {
        let mut extents = Extents::default();
        for at in [0, 100, 200] {
            extents.put(at, &[1; 10]);
        }
        extents.put(5, &[2; 200]);
        assert_eq!(pieces(&extents), [(0, 210)]);
        assert_eq!((extents.bytes(), extents.end()), (210, 210));
    }

    proptest! {
        #[test]
        fn the_last_write_of_each_byte_counts(
            writes in prop::collection::vec((0_u64..300, 1_usize..60, 1_u8..), 0..40),
        ) {
            let (mut extents, mut model) = (Extents::default(), vec![0_u8; 400]);
            for (at, length, byte) in writes {
                extents.put(at, &vec![byte; length]);
                model[at as usize..][..length].fill(byte);
            }
            prop_assert_eq!(&shown(&extents, 0..400), &model);
            let known = model.iter().filter(|byte| **byte != 0).count();
            prop_assert_eq!(extents.bytes(), known as u64);
            let list = pieces(&extents);
            prop_assert!(list.windows(2).all(|two| two[0].0 + (two[0].1 as u64) < two[1].0));
            prop_assert_eq!(&shown(&extents, 123..173)[..], &model[123..173]);
        }
    }
}

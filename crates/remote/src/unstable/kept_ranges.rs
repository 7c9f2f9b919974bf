use std::collections::BTreeMap;
use std::sync::Arc;

use crate::compound::OpenOwner;

/// A write verifier, which a server changes when it restarts (`writeverf3`, `verifier4`).
pub(crate) type WriteVerifier = [u8; 8];

/// Memory for the bookkeeping of one piece, in bytes.
const PIECE_BYTES: usize = 128;

/// A piece of written data that may still be lost.
#[derive(Debug, Clone)]
pub(crate) struct KeptData {
    /// The data.
    pub(crate) data: Vec<u8>,
    /// The write verifier in the reply.
    pub(crate) verifier: WriteVerifier,
    /// The caller that wrote it.
    pub(crate) owner: Arc<OpenOwner>,
    /// The serial number of the write.
    pub(super) serial: u64,
}

/// Pieces of one file by offset, without overlaps: later data replaces earlier data.
#[derive(Debug, Default)]
pub(super) struct KeptRanges {
    pieces: BTreeMap<u64, KeptData>,
    bytes: usize,
}

impl KeptData {
    fn bytes(&self) -> usize {
        self.data.len() + PIECE_BYTES
    }
}

impl KeptRanges {
    /// Memory that the pieces take, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The piece of the latest write.
    pub(super) fn newest(&self) -> Option<&KeptData> {
        self.pieces.values().max_by_key(|piece| piece.serial)
    }

    /// Returns whether there is a piece with at most this serial number.
    pub(super) fn has(&self, serial: u64) -> bool {
        self.pieces.values().any(|piece| piece.serial <= serial)
    }

    /// Stores a piece at an offset.
    pub(super) fn put(&mut self, offset: u64, piece: KeptData) {
        self.cut(offset, offset.saturating_add(piece.data.len() as u64));
        if !piece.data.is_empty() {
            self.insert(offset, piece);
        }
    }

    fn insert(&mut self, offset: u64, piece: KeptData) {
        self.bytes += piece.bytes();
        self.pieces.insert(offset, piece);
    }

    fn remove(&mut self, offset: u64) -> Option<KeptData> {
        let piece = self.pieces.remove(&offset)?;
        self.bytes -= piece.bytes();
        Some(piece)
    }

    /// Forgets the data from `start` to `end`.
    pub(super) fn cut(&mut self, start: u64, end: u64) {
        let reaches = |(at, piece): (&u64, &KeptData)| {
            (at.saturating_add(piece.data.len() as u64) > start).then_some(*at)
        };
        let before = self.pieces.range(..start).next_back().and_then(reaches);
        let within = self.pieces.range(start..end.max(start)).map(|(at, _)| *at);
        let touched: Vec<u64> = before.into_iter().chain(within).collect();
        for at in touched {
            let Some(mut piece) = self.remove(at) else { continue };
            let length = piece.data.len() as u64;
            if at.saturating_add(length) > end {
                let tail = piece.data.split_off(end.saturating_sub(at) as usize);
                self.insert(end, KeptData { data: tail, ..piece.clone_without_data() });
            }
            if at < start {
                piece.data.truncate((start - at) as usize);
                piece.data.shrink_to_fit();
                self.insert(at, piece);
            }
        }
    }

    /// Removes and returns the pieces up to a serial number for which `is_it` holds.
    pub(super) fn take(
        &mut self,
        serial: u64,
        is_it: impl Fn(&KeptData) -> bool,
    ) -> Vec<(u64, KeptData)> {
        let wanted = |(_, piece): &(&u64, &KeptData)| piece.serial <= serial && is_it(piece);
        let offsets: Vec<u64> = self.pieces.iter().filter(wanted).map(|(at, _)| *at).collect();
        offsets.into_iter().filter_map(|at| Some((at, self.remove(at)?))).collect()
    }
}

impl KeptData {
    fn clone_without_data(&self) -> Self {
        let (verifier, owner, serial) = (self.verifier, Arc::clone(&self.owner), self.serial);
        Self { data: Vec::new(), verifier, owner, serial }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES: u64 = 40;

    fn piece(serial: u64, length: u64) -> KeptData {
        let owner = Arc::new(OpenOwner { id: 1, credential: Vec::new() });
        let data = vec![serial as u8; length as usize];
        KeptData { data, verifier: [serial as u8; 8], owner, serial }
    }

    proptest! {
        #[test]
        fn pieces_agree_with_a_map_of_bytes(
            steps in proptest::collection::vec((0..BYTES, 0..BYTES, any::<bool>()), 0..30),
        ) {
            let (mut ranges, mut model) = (KeptRanges::default(), [0; BYTES as usize]);
            for (serial, (one, other, is_put)) in (1..).zip(steps) {
                let (start, end) = (one.min(other), one.max(other));
                if is_put {
                    ranges.put(start, piece(serial, end - start));
                } else {
                    ranges.cut(start, end);
                }
                let byte = if is_put { serial as u8 } else { 0 };
                model[start as usize..end as usize].fill(byte);
                let mut found = [0; BYTES as usize];
                let mut bytes = 0;
                for (at, piece) in &ranges.pieces {
                    let place = &mut found[*at as usize..][..piece.data.len()];
                    prop_assert!(place.iter().all(|byte| *byte == 0), "pieces overlap");
                    place.copy_from_slice(&piece.data);
                    prop_assert!(piece.data.iter().all(|byte| u64::from(*byte) == piece.serial));
                    bytes += piece.bytes();
                }
                prop_assert_eq!(found, model);
                prop_assert_eq!(ranges.bytes(), bytes);
            }
        }
    }

    #[test]
    fn pieces_are_taken_up_to_a_serial_number() {
        let mut ranges = KeptRanges::default();
        for serial in 1..=4 {
            ranges.put(serial * 10, piece(serial, 10));
        }
        let taken = ranges.take(3, |piece| piece.verifier != [2; 8]);
        let offsets: Vec<u64> = taken.iter().map(|(at, _)| *at).collect();
        assert_eq!(offsets, [10, 30]);
        assert_eq!(ranges.newest().unwrap().serial, 4);
        ranges.cut(0, u64::MAX);
        assert!(ranges.is_empty());
        assert_eq!(ranges.bytes(), 0);
    }
}

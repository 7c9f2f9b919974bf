use crate::rng::Rng;

/// Bytes after which the content of a file repeats. It is a prime, so that aligned blocks differ.
const PERIOD: usize = 65_521;

/// Most bytes of content that are returned in one piece.
pub(crate) const PIECE_BYTES_MAX: usize = 1 << 20;

/// The bytes of the files of a run. They follow from the seed, the file and the offset, so that
/// data read back can be checked at any time by comparison with memory.
#[derive(Debug)]
pub struct Content {
    pattern: Box<[u8]>,
}

impl Content {
    /// The content that belongs to a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let words = PERIOD.div_ceil(8);
        let mut period: Vec<u8> = (0..words).flat_map(|_| rng.bits().to_le_bytes()).collect();
        period.truncate(PERIOD);
        let pattern = period.iter().copied().cycle().take(PERIOD + PIECE_BYTES_MAX).collect();
        Self { pattern }
    }

    /// The number of a file, from its path.
    #[must_use]
    pub fn salt(path: &str) -> u64 {
        // FNV-1a: short, and it never changes.
        path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The `length` bytes of file `salt` from byte `offset` on, at most 1 MiB of them.
    ///
    /// # Panics
    /// More is asked for.
    #[must_use]
    pub fn piece(&self, salt: u64, offset: u64, length: usize) -> &[u8] {
        let period = PERIOD as u64;
        let start = ((salt % period + offset % period) % period) as usize;
        &self.pattern[start..start + length]
    }

    /// The offset of the first byte of `data` that differs from the content of file `salt` at byte
    /// `offset`.
    #[must_use]
    pub fn first_wrong(&self, salt: u64, offset: u64, data: &[u8]) -> Option<u64> {
        let mut at = offset;
        for part in data.chunks(PIECE_BYTES_MAX) {
            let piece = self.piece(salt, at, part.len());
            if part != piece {
                let same = part.iter().zip(piece).take_while(|(found, wanted)| found == wanted);
                return Some(at + same.count() as u64);
            }
            at += part.len() as u64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_is_found_wherever_it_is() {
        let content = Content::new(7);
        let salt = Content::salt("a/b");
        let mut data = content.piece(salt, 60_000, 100_000).to_vec();
        assert_eq!(content.first_wrong(salt, 60_000, &data), None);
        data[70_000] ^= 1;
        assert_eq!(content.first_wrong(salt, 60_000, &data), Some(130_000));
    }

    #[test]
    fn another_block_file_or_seed_has_another_content() {
        let content = Content::new(7);
        let salt = Content::salt("a/b");
        let block = content.piece(salt, 0, 512);
        for number in 1..10_000 {
            assert_ne!(content.piece(salt, number * 512, 512), block, "block {number}");
        }
        assert_ne!(content.piece(Content::salt("a/c"), 0, 512), block);
        assert_ne!(Content::new(8).piece(salt, 0, 512), block);
        assert_eq!(Content::new(7).piece(salt, 0, 512), block);
    }
}

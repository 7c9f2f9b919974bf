//! The header of a map and the checksums of pages: docs/formats.md, "Maps".

use comity_vfs::Handle;
use comity_vfs::limits::HANDLE_BYTES_MAX;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::key::FileName;

/// Length of a header in bytes.
pub(crate) const HEADER_BYTES: usize = 256;

/// Offset of the table of pages in a map.
pub(crate) const TABLE_OFFSET: u64 = 4096;

/// Bytes of a page's entry in the table.
pub(crate) const ENTRY_BYTES: u64 = 8;

const MAGIC: [u8; 8] = *b"comitymp";
const FORMAT: u32 = 1;
const CHECKSUM_AT: usize = 248;

/// The flag of a pinned file.
const PINNED: u64 = 1;

/// The header of a cached file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The file.
    pub(crate) file: FileName,
    /// The seed of the pages' checksums. A new epoch invalidates all earlier pages.
    pub(crate) epoch: u64,
    /// The change attribute of the version that the pages belong to.
    pub(crate) change: u64,
    /// The length of the file.
    pub(crate) size: u64,
    /// Number of cached pages; an estimate.
    pub(crate) present: u64,
    /// Time of the last use in seconds since 1970, accurate to an hour.
    pub(crate) used_seconds: u64,
    /// True if the cleaner must keep it.
    pub(crate) is_pinned: bool,
}

impl Header {
    /// Encodes it for the disk.
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&(self.file.handle.bytes().len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.file.volume.to_le_bytes());
        bytes.extend_from_slice(self.file.handle.padded());
        let flags = if self.is_pinned { PINNED } else { 0 };
        let words = [self.epoch, self.change, self.size, self.present, self.used_seconds, flags];
        for word in words {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.resize(CHECKSUM_AT, 0);
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        let mut header = [0; HEADER_BYTES];
        header.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
        header
    }

    /// Decodes a header; `None` if it has another format or is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (content, checksum) = bytes.get(..HEADER_BYTES)?.split_at_checked(CHECKSUM_AT)?;
        if xxh3_64(content).to_le_bytes() != checksum {
            return None;
        }
        let rest = content.strip_prefix(&MAGIC)?;
        let (format, rest) = rest.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (volume, rest) = rest.split_first_chunk::<8>()?;
        let (handle, rest) = rest.split_first_chunk::<HANDLE_BYTES_MAX>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let handle = Handle::new(handle.get(..length)?).ok()?;
        let file = FileName { volume: u64::from_le_bytes(*volume), handle };
        let [epoch, change, size, present, used_seconds, flags] = words(rest)?;
        let is_pinned = flags & PINNED != 0;
        let header = Self { file, epoch, change, size, present, used_seconds, is_pinned };
        (u32::from_le_bytes(*format) == FORMAT).then_some(header)
    }
}

fn words<const COUNT: usize>(bytes: &[u8]) -> Option<[u64; COUNT]> {
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let mut found = [0; COUNT];
    for place in &mut found {
        *place = words.next()?;
    }
    Some(found)
}

/// The checksum of a page, never 0.
pub(crate) fn checksum(epoch: u64, page: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, epoch.wrapping_add(page)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let file = FileName { volume: 7, handle: Handle::new(b"handle").unwrap() };
        Header { file, epoch: 1, change: 2, size: 3, present: 4, used_seconds: 5, is_pinned: true }
    }

    #[test]
    fn a_header_is_decoded_as_it_was_encoded() {
        assert_eq!(Header::decode(&header().encode()), Some(header()));
    }

    #[test]
    fn a_header_with_a_wrong_bit_is_refused() {
        let bytes = header().encode();
        for bit in 0..HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&damaged), None, "bit {bit}");
        }
        assert_eq!(Header::decode(&bytes[..255]), None);
        assert_eq!(Header::decode(&[0; HEADER_BYTES]), None);
    }

    #[test]
    fn the_checksum_of_a_page_depends_on_its_epoch_and_place() {
        let sum = checksum(1, 2, b"page");
        assert_ne!(sum, checksum(1, 3, b"page"));
        assert_ne!(sum, checksum(3, 2, b"page"));
        assert_ne!(sum, checksum(1, 2, b"pagf"));
    }
}

use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::Result;

use super::duty::Duty;
use crate::direct_file::{self, AlignedBuffer, PAGE_BYTES, PIECE_BYTES};
use crate::rng::Rng;

/// Bytes of the file that is read and written.
const FILE_BYTES: u64 = 256 << 20;

/// The way in which a disk is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskUse {
    /// Writes of 1 MiB, one after the other.
    Sequential,
    /// Reads of 4 KiB at random places.
    Random,
}

/// Keeps the disk of a folder busy, past the caches of the kernel.
///
/// # Errors
/// The folder takes no file, no direct access, or not that much data.
pub(super) fn consume(duty: Duty, folder: &Path, disk_use: DiskUse) -> Result<()> {
    let file = direct_file::make(folder, FILE_BYTES)?;
    let mut buffer = AlignedBuffer::new();
    let (mut rng, mut at) = (Rng::new(1), 0);
    duty.keep(|| match disk_use {
        DiskUse::Sequential => {
            at = (at + PIECE_BYTES as u64) % FILE_BYTES;
            Ok(file.write_all_at(buffer.bytes(PIECE_BYTES), at)?)
        }
        DiskUse::Random => {
            let page = rng.below(FILE_BYTES / PAGE_BYTES as u64);
            Ok(file.read_exact_at(buffer.bytes(PAGE_BYTES), page * PAGE_BYTES as u64)?)
        }
    })
}

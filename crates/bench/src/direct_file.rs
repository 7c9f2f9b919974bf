//! A file that is read and written past the caches of the kernel.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstatvfs};

use crate::rng::Rng;

/// Bytes of a piece that is written or read in sequence.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// Bytes of a piece that is read at a random place.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Memory for direct access begins at a multiple of this.
const ALIGNMENT: usize = 4096;

/// Makes a file in a folder, and writes all of its `size` bytes, which are a multiple of
/// [`PIECE_BYTES`]. It has no name by which others could reach or replace it, and is gone when this
/// program ends.
///
/// # Errors
/// The folder takes no file, no direct access, or not that much data with as much left for others.
pub(crate) fn make(folder: &Path, size: u64) -> Result<File> {
    let shown = folder.display();
    let file = tempfile::tempfile_in(folder).with_context(|| format!("make a file in {shown}"))?;
    let disk = fstatvfs(&file)?;
    ensure!(
        disk.f_bavail.saturating_mul(disk.f_frsize) >= 2 * size,
        "{shown} has less than {} MiB free",
        (2 * size) >> 20
    );
    fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::DIRECT)
        .with_context(|| format!("{shown} takes no direct access; name a folder on a disk"))?;
    let mut buffer = AlignedBuffer::new();
    for at in (0..size).step_by(PIECE_BYTES) {
        let written = file.write_all_at(buffer.bytes(PIECE_BYTES), at);
        written.with_context(|| format!("write {} MiB", size >> 20))?;
    }
    Ok(file)
}

/// Bytes that begin at a multiple of [`ALIGNMENT`], and that no disk can compress.
pub(crate) struct AlignedBuffer {
    memory: Vec<u8>,
    begin: usize,
}

impl AlignedBuffer {
    /// Makes a buffer of [`PIECE_BYTES`].
    pub(crate) fn new() -> Self {
        let mut rng = Rng::new(1);
        let words = (PIECE_BYTES + ALIGNMENT) / size_of::<u64>();
        let memory: Vec<u8> = (0..words).flat_map(|_| rng.bits().to_ne_bytes()).collect();
        let begin = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, begin }
    }

    /// Returns the first bytes of the buffer, at most [`PIECE_BYTES`].
    pub(crate) fn bytes(&mut self, length: usize) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + length]
    }
}

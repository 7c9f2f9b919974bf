use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::OFlags;

use super::duty::Duty;
use crate::rng::Rng;

/// Bytes of the file that is read and written.
const FILE_BYTES: u64 = 256 << 20;
/// Bytes of one sequential write.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes of one read at a random place.
const READ_BYTES: usize = 4096;
/// Memory for direct access begins at a multiple of this.
const ALIGNMENT: usize = 4096;

/// The way in which a disk is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskUse {
    /// Writes of 1 MiB, one behind the other.
    Sequential,
    /// Reads of 4 KiB at random places.
    Random,
}

/// Keeps the disk of a folder busy, past the caches of the kernel.
///
/// # Errors
/// The folder takes no file, no direct access, or not that much data.
pub(super) fn consume(duty: Duty, folder: &Path, disk_use: DiskUse) -> Result<()> {
    let file = fill(folder)?;
    let mut buffer = Aligned::new(WRITE_BYTES);
    let (mut rng, mut at) = (Rng::new(1), 0);
    duty.keep(|| match disk_use {
        DiskUse::Sequential => {
            at = (at + WRITE_BYTES as u64) % FILE_BYTES;
            Ok(file.write_all_at(buffer.bytes(WRITE_BYTES), at)?)
        }
        DiskUse::Random => {
            let page = rng.below(FILE_BYTES / READ_BYTES as u64);
            Ok(file.read_exact_at(buffer.bytes(READ_BYTES), page * READ_BYTES as u64)?)
        }
    })
}

/// Makes a file without a name, and writes all of it.
fn fill(folder: &Path) -> Result<File> {
    let named = tempfile::Builder::new().prefix("comity-consume-").tempfile_in(folder);
    let named = named.with_context(|| format!("make a file in {}", folder.display()))?;
    let flags = OFlags::DIRECT.bits().cast_signed();
    let direct = OpenOptions::new().read(true).write(true).custom_flags(flags).open(named.path());
    let file = direct.with_context(|| {
        format!(
            "{} takes no direct access; name a folder on a disk with --directory",
            folder.display()
        )
    })?;
    let mut buffer = Aligned::new(WRITE_BYTES);
    for at in (0..FILE_BYTES).step_by(WRITE_BYTES) {
        let written = file.write_all_at(buffer.bytes(WRITE_BYTES), at);
        written.with_context(|| format!("write {} MiB", FILE_BYTES >> 20))?;
    }
    Ok(file)
}

/// Bytes that begin at a multiple of [`ALIGNMENT`].
struct Aligned {
    memory: Vec<u8>,
    begin: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let memory = vec![0x5a; length + ALIGNMENT];
        let begin = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, begin }
    }

    fn bytes(&mut self, length: usize) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + length]
    }
}

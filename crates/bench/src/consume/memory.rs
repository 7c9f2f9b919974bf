use std::fs;
use std::hint::black_box;

use anyhow::{Context, Result};

use super::duty::Duty;

/// The part of the available memory that is taken at most: a machine without memory ends processes.
const LEVEL_MAX: f64 = 0.9;
/// Bytes that one page of the kernel has at least.
const PAGE_BYTES: usize = 4096;
/// Pages that are touched in one piece of work.
const PIECE_PAGES: usize = 256;

/// Takes a part of the memory that is available now, and touches its pages again and again.
///
/// # Errors
/// The kernel does not say how much memory is available, or does not give it.
pub(super) fn consume(duty: Duty) -> Result<()> {
    let available = available_bytes(&fs::read_to_string("/proc/meminfo")?)
        .context("/proc/meminfo does not say how much memory is available")?;
    let bytes = (available as f64 * duty.level.min(LEVEL_MAX)) as usize;
    let mut taken = Vec::new();
    taken.try_reserve_exact(bytes).context("the kernel does not give that much memory")?;
    taken.resize(bytes, 1_u8);
    let mut page = 0;
    duty.keep(|| {
        touch(black_box(&mut taken), &mut page);
        Ok(())
    })
}

fn touch(taken: &mut [u8], page: &mut usize) {
    let pages = taken.len().div_ceil(PAGE_BYTES);
    for _ in 0..PIECE_PAGES.min(pages) {
        *page = (*page + 1) % pages;
        if let Some(byte) = taken.get_mut(*page * PAGE_BYTES) {
            *byte = byte.wrapping_add(1);
        }
    }
}

fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_in_kibibytes() {
        let text = "MemTotal:  100 kB\nMemAvailable:   40 kB\n";
        assert_eq!(available_bytes(text), Some(40 * 1024));
        assert_eq!(available_bytes("MemTotal: 1 kB\n"), None);
        assert_eq!(available_bytes("MemAvailable: much\n"), None);
    }

    #[test]
    fn touching_goes_round_all_pages() {
        let (mut taken, mut page) = (vec![0; 3 * PAGE_BYTES], 0);
        (0..4).for_each(|_| touch(&mut taken, &mut page));
        let touched: Vec<u8> = taken.iter().step_by(PAGE_BYTES).copied().collect();
        assert_eq!(touched, [4, 4, 4]);
        touch(&mut [], &mut page);
    }
}

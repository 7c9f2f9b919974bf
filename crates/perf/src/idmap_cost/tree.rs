use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::os::unix::fs::fchown;
use std::path::Path;

use anyhow::Result;
use comity_bench::fixture_tree::{CALLER, SMALL_FILES};
use tempfile::TempDir;

use super::case::{ENTRIES, HIDDEN_FILES};

/// The first id on disk of the owners from another domain.
pub const FOREIGN: u32 = 2_000_000;

/// The owner of the files that are hidden from the caller.
pub const HIDDEN: u32 = 1_500_000;

/// The number of ids in an entry of the other domain, and the distance between the first ids of two
/// entries.
const IDS: u32 = 10;
const APART: u32 = 20;

/// The ids on disk of an entry; entry 0 is the caller.
#[must_use]
pub const fn foreign(entry: u32) -> RangeInclusive<u32> {
    let first = FOREIGN + entry * APART;
    first..=first + IDS - 1
}

/// Makes directories with files of all kinds of owners. They are removed when the result is
/// dropped.
///
/// # Errors
/// If the file system fails.
pub(super) fn build() -> Result<TempDir> {
    let top = tempfile::tempdir()?;
    fill(&top.path().join("empty"), 0, |_| CALLER)?;
    fill(&top.path().join("own"), SMALL_FILES, |_| CALLER)?;
    for entries in ENTRIES {
        fill(&top.path().join(format!("mixed-{entries}")), SMALL_FILES, |file| {
            *foreign(entry_of(file as u32, entries)).start() + 3
        })?;
    }
    for count in HIDDEN_FILES {
        fill(&top.path().join(format!("hidden-{count}")), count, |_| HIDDEN)?;
    }
    Ok(top)
}

/// Returns the entry that the owner of a file belongs to. The files of an entry are together, and
/// if there are more entries than files, the used entries are spread over all.
fn entry_of(file: u32, entries: u32) -> u32 {
    // The cloak has two entries for others, so that many are foreign in both.
    let (foreign, files) = (u64::from(entries - 2), SMALL_FILES as u64);
    1 + (u64::from(file) * foreign / files) as u32
}

fn fill(folder: &Path, count: usize, owner: impl Fn(usize) -> u32) -> Result<()> {
    fs::create_dir(folder)?;
    for number in 0..count {
        let file = File::create(folder.join(format!("f{number:06}")))?;
        let owner = owner(number);
        fchown(file, Some(owner), Some(owner))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_spread_over_all_entries_in_runs() {
        for entries in ENTRIES {
            let owners: Vec<u32> =
                (0..SMALL_FILES as u32).map(|file| entry_of(file, entries)).collect();
            assert!(owners.is_sorted());
            assert_eq!(owners[0], 1);
            let last = owners[SMALL_FILES - 1];
            assert!(last < entries && last > (entries - 2) / 10 * 9, "{last} of {entries}");
        }
    }
}

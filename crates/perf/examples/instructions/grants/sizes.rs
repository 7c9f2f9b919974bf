//! The cost of reads of a set of files, for growing numbers of cached decisions.

use std::path::Path;

use anyhow::Result;
use comity_bench::rng::Rng;
use comity_keys::PublicKey;
use comity_perf::grants_cost::{SIZES, file};

use super::processor_time;
use super::site::KeyedExport;
use super::work::read;

/// Files that are read.
const FILES: u64 = 250;
/// Reads of them.
const READS: u64 = 4_000;

/// Nanoseconds of a read by the account, and by a grant for each number of decisions kept.
pub(super) fn reads(tree: &Path, files: u64) -> Result<Vec<f64>> {
    let site = KeyedExport::new(tree, SIZES[0])?;
    let account = measure(&site, &site.account(), files)?;
    let by_grant = |decisions: &usize| {
        let site = KeyedExport::new(tree, *decisions)?;
        let (key, chain) = site.chain(&site.find("")?, 1)?;
        site.submit(key, &chain)?;
        measure(&site, &key, files)
    };
    let others: Result<Vec<f64>> = SIZES.iter().map(by_grant).collect();
    Ok([vec![account], others?].concat())
}

fn measure(site: &KeyedExport, key: &PublicKey, files: u64) -> Result<f64> {
    let (mut of, files) = (site.files(key)?, files.min(FILES));
    (0..files).try_for_each(|number| read(of.as_mut(), &file(number)))?;
    let mut rng = Rng::new(1);
    let all =
        processor_time(|| (0..READS).try_for_each(|_| read(of.as_mut(), &file(rng.below(files)))))?;
    Ok(all / READS as f64)
}
